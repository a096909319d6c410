<?php

/** Bootstrap for PHPUnit: tests the extension if it is loaded, otherwise the implementation in PHP. */

declare(strict_types=1);

require __DIR__ . '/../src/autoload.php';
require __DIR__ . '/Support.php';

fwrite(STDERR, sprintf(
    "implementation: %s, opcache: %s, JIT: %s\n",
    extension_loaded('quadrille') ? 'extension' : 'PHP',
    Quadrille\Tests\Support::opcache() ? 'on' : 'off',
    Quadrille\Tests\Support::jit() ? 'on' : 'off',
));
