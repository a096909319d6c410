<?php

/** For PHPUnit: the implementation under test is the extension if it is loaded, and the one in PHP if not. */

declare(strict_types=1);

require __DIR__ . '/../src/autoload.php';
require __DIR__ . '/Support.php';

fwrite(STDERR, sprintf(
    "implementation: %s, opcache: %s, JIT: %s\n",
    extension_loaded('quadrille') ? 'extension' : 'PHP',
    Quadrille\Tests\Support::opcache() ? 'on' : 'off',
    Quadrille\Tests\Support::jit() ? 'on' : 'off',
));
