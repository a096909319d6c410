<?php

/** Runs out of memory while encrypting. */

declare(strict_types=1);

require_once __DIR__ . '/../../../src/autoload.php';

ini_set('memory_limit', '24M');
$field = Quadrille\KeyRing::parse("quadrille field keys 1\nkey 3f9a01c2 active " . base64_encode(str_repeat('a', 32))
    . "\nindex " . base64_encode(str_repeat('i', 32)))->field('t', 'c');
$plain = str_repeat('x', 15 << 20);
echo strlen($field->encrypt($plain, 1));
