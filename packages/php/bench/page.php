<?php

/**
 * Requests per second of a page that shows 150 rows of four encrypted fields, by ab: page.php [ROUNDS [REQUESTS]].
 *
 * MariaDB, nginx and php-fpm with opcache; the forms alternate in each round, and the median counts. It also prints
 * the CPU time of php-fpm and nginx per request, which other programs disturb less.
 */

declare(strict_types=1);

require __DIR__ . '/../src/autoload.php';
foreach (['Servers', 'Process', 'Database'] as $class) {
    require __DIR__ . "/../tests/application/$class.php";
}
require __DIR__ . '/pages/forms.php';

use Quadrille\KeyRing;
use Quadrille\Tests\Application\Servers;

const ROWS = 150;
const FORMS = ['plain', 'quadrille', 'openssl', 'mcrypt'];

$rounds = (int) ($argv[1] ?? 7);
$requests = (int) ($argv[2] ?? 600);

$servers = new Servers();
$database = $servers->mariadb();
$keys = $servers->keys() . '/fields.keys';
file_put_contents($keys, "quadrille field keys 1\nkey 3f9a01c2 active " . base64_encode(random_bytes(32))
    . "\nindex " . base64_encode(random_bytes(32)) . "\n");
chmod($keys, 0600);
posix_geteuid() === 0 && chown($keys, 'www-data');

$connection = $database->connect();
foreach (FORMS as $form) {
    $connection->exec("CREATE TABLE users_$form (id int PRIMARY KEY, name varbinary(400), phone varbinary(400),"
        . ' email varbinary(400), address varbinary(400))');
    $insert = $connection->prepare("INSERT INTO users_$form VALUES (?, ?, ?, ?, ?)");
    $encrypt = $form === 'quadrille' ? null : Forms::encryptor($form, str_repeat('k', 32));
    for ($row = 1; $row <= ROWS; $row++) {
        $user = ['name' => "Jürgen Müller-Lüdenscheidt the $row.", 'phone' => sprintf('+49 30 %07d', $row),
            'email' => "juergen.mueller-luedenscheidt.$row@example.com", 'address' => "Friedrichstraße $row, Hinterhaus links, 10115 Berlin"];
        foreach ($user as $column => $value) {
            $user[$column] = match (true) {
                $form === 'quadrille' => KeyRing::load($keys)->field('users', $column)->encrypt($value, row: $row),
                $encrypt !== null => $encrypt($value),
                default => $value,
            };
        }
        $insert->execute([$row, ...array_values($user)]);
    }
}

$port = $servers->web('bench/pages', $database, true, ['extension=mcrypt', 'error_reporting=8191'], 2);
$url = static fn (string $form) => "http://127.0.0.1:$port/page.php?form=$form";
$pages = array_map(static fn (string $form) => file_get_contents($url($form)), FORMS);
count(array_unique($pages)) === 1 && substr_count($pages[0], '<tr>') === ROWS or exit("the pages differ\n");

$taken = [];
for ($round = 0; $round <= $rounds; $round++) {
    foreach (FORMS as $form) {
        $before = $servers->cpu();
        exec('ab -q -n ' . $requests . ' -c 2 ' . escapeshellarg($url($form)) . ' 2>&1', $said, $status);
        $report = implode("\n", $said);
        $said = [];
        preg_match('/Requests per second:\s+([0-9.]+)/', $report, $rate) && str_contains($report, "Failed requests:        0")
            or exit("ab failed:\n$report\n");
        // The first round is a warm-up.
        if ($round > 0) {
            $taken[$form]['rate'][] = (float) $rate[1];
            $taken[$form]['cpu'][] = ($servers->cpu() - $before) / $requests;
        }
    }
}

$median = static function (array $values): float {
    sort($values);
    return $values[intdiv(count($values), 2)];
};
$plain = $taken['plain'];
$slow = $taken['mcrypt'];
printf("page of %d rows x 4 fields, median of %d interleaved rounds of %d requests\n", ROWS, $rounds, $requests);
printf("%-10s %10s %9s %9s %12s %9s %9s\n", '', 'requests/s', 'x plain', 'x mcrypt', 'us CPU', 'x plain', 'x mcrypt');
foreach ($taken as $form => $values) {
    [$rate, $cpu] = [$median($values['rate']), $median($values['cpu'])];
    printf("%-10s %10.0f %9.2f %9.2f %12.0f %9.2f %9.2f\n", $form, $rate, $rate / $median($plain['rate']),
        $rate / $median($slow['rate']), $cpu, $median($plain['cpu']) / $cpu, $median($slow['cpu']) / $cpu);
}
// Requests per second of another site on another machine: compare the ratios, not the rates.
$published = ['mcrypt' => 600, 'a module with AES-NI' => 1400, 'OpenSSL 1.0.1' => 1200];
echo "\npublished for a site in PHP with AES-256:\n";
foreach ($published as $form => $rate) {
    printf("%-22s %6.0f requests/s, %.2f x mcrypt\n", $form, $rate, $rate / $published['mcrypt']);
}
