<?php

/** 150 rows of four fields from a database, decrypted and shown: `?form=plain`, `openssl`, `mcrypt`, `quadrille`. */

declare(strict_types=1);

require_once __DIR__ . '/../../src/autoload.php';
require_once __DIR__ . '/forms.php';

$form = $_GET['form'];
$columns = ['name', 'phone', 'email', 'address'];
$database = new PDO(getenv('APP_DSN'), getenv('APP_USER'));
$rows = $database->query("SELECT id, name, phone, email, address FROM users_$form ORDER BY id")->fetchAll(PDO::FETCH_ASSOC);

if ($form === 'quadrille') {
    $ring = Quadrille\KeyRing::load(getenv('APP_KEYS'));
    $ids = array_column($rows, 'id');
    foreach ($columns as $column) {
        $values[$column] = $ring->field('users', $column)->decryptMany(array_column($rows, $column), rows: $ids);
    }
} else {
    $decrypt = Forms::decryptor($form, str_repeat('k', 32));
    foreach ($columns as $column) {
        $values[$column] = $decrypt === null ? array_column($rows, $column) : array_map($decrypt, array_column($rows, $column));
    }
}

echo "<!doctype html>\n<title>Users</title>\n<table>\n";
foreach ($rows as $i => $row) {
    echo '<tr>';
    foreach ($columns as $column) {
        echo '<td>', htmlspecialchars($values[$column][$i]), '</td>';
    }
    echo "</tr>\n";
}
echo "</table>\n";

