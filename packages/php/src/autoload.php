<?php

/**
 * For projects without Composer: `require 'src/autoload.php'`.
 *
 * PHP asks an autoloader only for classes that it does not have. With the extension it has them all, and nothing here
 * is ever read; that is the whole choice between the two implementations.
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
