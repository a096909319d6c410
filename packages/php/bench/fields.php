<?php

/**
 * Nanoseconds of CPU for one field, compared with other forms: fields.php [ROUNDS]. The forms alternate in each
 * round, and the median counts. A measurement includes creating or parsing the stored form, and a new nonce for each
 * envelope.
 */

declare(strict_types=1);

require __DIR__ . '/../src/autoload.php';

const BYTES = 64;
const REPETITIONS = 4000;

$rounds = (int) ($argv[1] ?? 15);
$plain = random_bytes(BYTES);
$aad = 'users.email.12345';
$key = random_bytes(32);
$encryptionKey = random_bytes(32);
$macKey = random_bytes(32);
$bits = 'aes-256-gcm';

$text = "quadrille field keys 1\nkey 3f9a01c2 active " . base64_encode($key) . "\nindex " . base64_encode($key) . "\n";
$field = Quadrille\KeyRing::parse($text)->field('users', 'email');

$forms = [
    'openssl AES-256-GCM' => [
        static function () use ($plain, $key, $aad): string {
            $nonce = random_bytes(12);
            $ciphertext = openssl_encrypt($plain, 'aes-256-gcm', $key, OPENSSL_RAW_DATA, $nonce, $tag, $aad);
            return $nonce . $tag . $ciphertext;
        },
        static fn (string $s) => openssl_decrypt(substr($s, 28), 'aes-256-gcm', $key, OPENSSL_RAW_DATA, substr($s, 0, 12), substr($s, 12, 16), $aad),
    ],
    'sodium AES-256-GCM' => [
        static function () use ($plain, $key, $aad): string {
            $nonce = random_bytes(12);
            return $nonce . sodium_crypto_aead_aes256gcm_encrypt($plain, $aad, $nonce, $key);
        },
        static fn (string $s) => sodium_crypto_aead_aes256gcm_decrypt(substr($s, 12), $aad, substr($s, 0, 12), $key),
    ],
    // Illuminate\Encryption\Encrypter's default: AES-256-CBC, HMAC-SHA256, JSON, base64 twice.
    'Laravel\'s form' => [
        static function () use ($plain, $key): string {
            $iv = random_bytes(16);
            $value = openssl_encrypt($plain, 'aes-256-cbc', $key, 0, $iv);
            $iv = base64_encode($iv);
            $mac = hash_hmac('sha256', $iv . $value, $key);
            return base64_encode(json_encode(['iv' => $iv, 'value' => $value, 'mac' => $mac, 'tag' => ''], JSON_UNESCAPED_SLASHES));
        },
        static function (string $s) use ($key): string|false {
            $payload = json_decode(base64_decode($s), true);
            $iv = base64_decode($payload['iv'], true);
            $mac = hash_hmac('sha256', $payload['iv'] . $payload['value'], $key);
            return hash_equals($mac, $payload['mac']) ? openssl_decrypt($payload['value'], 'aes-256-cbc', $key, 0, $iv) : false;
        },
    ],
    extension_loaded('quadrille') ? 'Quadrille, extension' : 'Quadrille, in PHP' => [
        static fn (): string => $field->encrypt($plain, row: 12345),
        static fn (string $s): string => $field->decrypt($s, row: 12345),
    ],
];
if (!function_exists('sodium_crypto_aead_aes256gcm_is_available') || !sodium_crypto_aead_aes256gcm_is_available()) {
    unset($forms['sodium AES-256-GCM']);
}

$cpu = static function (): float {
    $used = getrusage();
    return ($used['ru_utime.tv_sec'] + $used['ru_stime.tv_sec']) * 1e9 + ($used['ru_utime.tv_usec'] + $used['ru_stime.tv_usec']) * 1e3;
};
$measure = static function (callable $work, string ...$argument) use ($cpu): float {
    $before = $cpu();
    for ($i = 0; $i < REPETITIONS; $i++) {
        $work(...$argument);
    }
    return ($cpu() - $before) / REPETITIONS;
};

$taken = [];
$empty = static fn (string $s = ''): string => $s;
foreach ($forms as [$encrypt, $decrypt]) {
    $decrypt($encrypt()) === $plain or exit("a form does not decrypt its own output\n");
}
for ($round = 0; $round < $rounds; $round++) {
    $taken['(an empty closure)']['encrypt'][] = $measure($empty);
    $taken['(an empty closure)']['decrypt'][] = $measure($empty, $plain);
    foreach ($forms as $name => [$encrypt, $decrypt]) {
        $stored = $encrypt();
        $taken[$name]['encrypt'][] = $measure($encrypt);
        $taken[$name]['decrypt'][] = $measure($decrypt, $stored);
    }
}

$median = static function (array $values): float {
    sort($values);
    return $values[intdiv(count($values), 2)];
};
$openssl = $taken['openssl AES-256-GCM'];
printf("%d bytes, ns of CPU, median of %d interleaved rounds (the closure around each call included)\n", BYTES, $rounds);
printf("%-24s %9s %7s %9s %7s\n", '', 'encrypt', 'ratio', 'decrypt', 'ratio');
foreach ($taken as $name => $times) {
    $encrypt = $median($times['encrypt']);
    $decrypt = $median($times['decrypt']);
    printf("%-24s %9.0f %7.3f %9.0f %7.3f\n", $name, $encrypt, $encrypt / $median($openssl['encrypt']), $decrypt, $decrypt / $median($openssl['decrypt']));
}
