<?php

/**
 * Autoloader for projects without Composer: `require 'src/autoload.php'`.
 *
 * PHP calls an autoloader only for missing classes. With the extension none are missing, so no file here is read;
 * that selects between the two implementations.
 */

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Quadrille\\')) {
        $file = __DIR__ . '/' . strtr(substr($class, strlen('Quadrille\\')), '\\', '/') . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});
