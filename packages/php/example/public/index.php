<?php

/** Lists users, or those with a phone number: `/?phone=...`. */

declare(strict_types=1);

require __DIR__ . '/../../src/autoload.php';
require __DIR__ . '/../Users.php';

$users = Users::fromEnvironment();
$list = isset($_GET['phone']) ? $users->byPhone((string) $_GET['phone']) : $users->all();

header('Content-Type: text/html; charset=utf-8');
echo "<!doctype html>\n<title>Users</title>\n<table>\n";
foreach ($list as $user) {
    echo '<tr>';
    foreach (Users::COLUMNS as $column) {
        echo '<td>', htmlspecialchars($user[$column] ?? ''), '</td>';
    }
    echo "</tr>\n";
}
echo "</table>\n";
