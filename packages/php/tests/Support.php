<?php

declare(strict_types=1);

namespace Quadrille\Tests;

use Quadrille\KeyRing;

/** Key rings for tests, and access to the other implementation. */
final class Support
{
    public static function key(string $letter): string
    {
        return base64_encode(str_repeat($letter, 32));
    }

    /** Returns a ring with known keys: by default one active key. */
    public static function text(string ...$keys): string
    {
        $keys = $keys ?: ['key 3f9a01c2 active ' . self::key('a')];
        return "quadrille field keys 1\n" . implode("\n", $keys) . "\nindex " . self::key('i') . "\n";
    }

    public static function ring(string ...$keys): KeyRing
    {
        return KeyRing::parse(self::text(...$keys));
    }

    /** Creates a file that is removed when the process ends. */
    public static function file(string $contents, int $mode = 0600): string
    {
        $path = tempnam(sys_get_temp_dir(), 'quadrille');
        file_put_contents($path, $contents);
        chmod($path, $mode);
        register_shutdown_function(static fn () => @unlink($path));
        return $path;
    }

    /**
     * Runs a script with the other implementation; returns its output, or null without an extension.
     */
    public static function byTheOther(string $script): ?string
    {
        $extension = getenv('QUADRILLE_EXTENSION');
        if (!$extension) {
            return null;
        }
        return self::php($script, extension_loaded('quadrille') ? [] : ["-dextension=$extension"]);
    }

    /** Runs a script with the same implementation and other settings. */
    public static function bySame(string $script, string ...$settings): string
    {
        $extension = extension_loaded('quadrille') ? ['-dextension=' . getenv('QUADRILLE_EXTENSION')] : [];
        return self::php($script, [...$extension, ...array_map(static fn ($setting) => "-d$setting", $settings)]);
    }

    /** @param list<string> $arguments */
    private static function php(string $script, array $arguments): string
    {
        $prelude = 'error_reporting(E_ALL); ini_set("display_errors", "1"); require '
            . var_export(__DIR__ . '/../src/autoload.php', true) . ';';
        $command = [PHP_BINARY, ...$arguments, '-r', $prelude . $script];
        $process = proc_open($command, [1 => ['pipe', 'w'], 2 => ['redirect', 1]], $pipes);
        $output = stream_get_contents($pipes[1]);
        proc_close($process);
        return $output;
    }

    public static function opcache(): bool
    {
        return (bool) (function_exists('opcache_get_status') && opcache_get_status(false));
    }

    public static function jit(): bool
    {
        return self::opcache() && (opcache_get_status(false)['jit']['on'] ?? false);
    }
}
