<?php

/** Everything that the extension does, a few times: for valgrind, which looks for leaks and for reads beyond an end. */

declare(strict_types=1);

use Quadrille\KeyRing;

$key = static fn (string $letter) => base64_encode(str_repeat($letter, 32));
$file = tempnam(sys_get_temp_dir(), 'quadrille');
chmod($file, 0600);
for ($round = 0; $round < 5; $round++) {
    $text = "quadrille field keys 1\nkey 3f9a01c2 active {$key('a')}\nkey 3f9a01c3 decrypt-only {$key('b')}\nindex {$key('i')}\n";
    file_put_contents($file, $text . str_repeat("# changed\n", $round));
    clearstatcache();
    foreach ([KeyRing::load($file), KeyRing::load($file), KeyRing::parse($text)] as $ring) {
        $ring->keys();
        $field = $ring->field('users', 'email');
        foreach ([0, 1, 15, 16, 17, 63, 64, 95, 96, 97, 300, 2047, 2048, 2049, 70_000] as $length) {
            $plain = str_repeat('x', $length);
            $envelope = $field->encrypt($plain, $length + 1);
            $field->decrypt($envelope, row: (string) ($length + 1)) === $plain or exit("wrong at $length bytes\n");
            $field->rotate($envelope, $length + 1);
            $field->needsRotation($envelope);
            $field->blindIndex($plain, 256);
            $field->decryptMany(['a' => $envelope, 5 => null], [$length + 1, 2]);
            $stream = fopen('php://memory', 'w+');
            fwrite($stream, $envelope);
            rewind($stream);
            $field->decrypt($stream, $length + 1);
            foreach (
                [
                    static fn () => $field->decrypt(substr($envelope, 1), 1),
                    static fn () => $field->decrypt($envelope, 'another'),
                    static fn () => $field->decryptMany([$envelope, $envelope], [$length + 1, 'another']),
                    static fn () => $field->decrypt(null, 1),
                    static fn () => $field->encrypt($plain, ''),
                    static fn () => $field->encrypt($plain, 1.5),
                    static fn () => $field->blindIndex($plain, 3),
                    static fn () => KeyRing::parse($plain),
                    static fn () => KeyRing::load("$file.missing"),
                    static fn () => clone $field,
                    static fn () => serialize($ring),
                ] as $wrong
            ) {
                try {
                    $wrong();
                    exit("nothing was thrown\n");
                } catch (Throwable) {
                }
            }
        }
        $legacy = $ring->legacy(str_repeat('d', 32), str_repeat('v', 32));
        $legacy->decrypt($legacy->encrypt(str_repeat('x', 1000))) === str_repeat('x', 1000) or exit("wrong older form\n");
        KeyRing::randomKey(1000);
    }
}
unlink($file);
echo "done\n";
