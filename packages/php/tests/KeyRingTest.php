<?php

declare(strict_types=1);

namespace Quadrille\Tests;

use PHPUnit\Framework\TestCase;
use Quadrille\DecryptionException;
use Quadrille\Field;
use Quadrille\FieldException;
use Quadrille\KeyRing;
use Quadrille\KeyRingException;
use Quadrille\Legacy;

final class KeyRingTest extends TestCase
{
    /** Field for scripts in other processes. */
    public const FIELD = 'KeyRing::parse("quadrille field keys 1\nkey 3f9a01c2 active " . base64_encode(str_repeat("a", 32))'
        . ' . "\nindex " . base64_encode(str_repeat("i", 32)))->field("users", "email")';

    public function testKeysAndTheirStates(): void
    {
        $ring = Support::ring(
            'key 12345678 active ' . Support::key('a'),
            'key 0000000f decrypt-only ' . Support::key('b'),
            'key 00000001 retired ' . Support::key('c'),
        );
        self::assertSame([
            ['id' => '12345678', 'state' => 'active'],
            ['id' => '0000000f', 'state' => 'decrypt-only'],
            ['id' => '00000001', 'state' => 'retired'],
        ], $ring->keys());
    }

    public function testAFileIsReadAgainWhenItChanges(): void
    {
        $path = Support::file(Support::text());
        $before = KeyRing::load($path);
        self::assertSame('3f9a01c2', KeyRing::load($path)->keys()[0]['id']);
        $envelope = $before->field('t', 'c')->encrypt('x', 1);
        $next = "$path.next";
        file_put_contents($next, Support::text(
            'key 3f9a01c2 decrypt-only ' . Support::key('a'),
            'key 99999999 active ' . Support::key('b'),
        ));
        chmod($next, 0600);
        rename($next, $path);
        clearstatcache();
        $after = KeyRing::load($path);
        self::assertSame('99999999', $after->keys()[1]['id']);
        self::assertTrue($after->field('t', 'c')->needsRotation($envelope));
        self::assertSame('x', $before->field('t', 'c')->decrypt($envelope, 1), 'a holder of the old ring keeps it');
        chmod($path, 0644);
        clearstatcache();
        $this->expectException(KeyRingException::class);
        KeyRing::load($path);
    }

    public function testFilesThatOthersCanReadAreRefused(): void
    {
        foreach ([0640, 0604, 0620, 0601] as $mode) {
            $path = Support::file(Support::text(), $mode);
            $this->assertRefused(sprintf('%s: others may read the keys (mode %04o); close it with: chmod 600 %1$s', $path, $mode), $path);
        }
        KeyRing::load(Support::file(Support::text(), 0400));
    }

    public function testWhatIsNoKeyRingIsNamed(): void
    {
        $missing = sys_get_temp_dir() . '/quadrille-missing';
        $this->assertRefused("$missing: cannot read the key ring: ", $missing);
        $this->assertRefused(sys_get_temp_dir() . ': is not a plain file', sys_get_temp_dir());
        $this->assertRefused('is not text', Support::file("\xff\xfe"));
        $this->assertRefused('is larger than 1 MiB', Support::file(str_repeat("#\n", 600_000)));
        $path = Support::file(str_replace('active', 'enabled', Support::text()));
        $this->assertRefused("$path:2: the state must be one of active, decrypt-only, retired", $path);
    }

    public function testMistakesInATextAreNamedByLineAndWithoutKeys(): void
    {
        $key = Support::key('a');
        $good = Support::text();
        foreach (
            [
                ['', "line 1: a key ring begins with the line 'quadrille field keys 1'"],
                [str_replace('keys 1', 'keys 2', $good), "line 1: a key ring begins with the line 'quadrille field keys 1'"],
                [str_replace('3f9a01c2', '3f9a', $good), 'line 2: a key id is 8 hexadecimal digits'],
                [str_replace($key, substr($key, 1), $good), 'line 2: a key is 32 bytes in base64'],
                [str_replace($key, substr($key, 0, -2) . 'F=', $good), 'line 2: a key is 32 bytes in base64'],
                ["{$good}key 3f9a01c2 retired $key", 'line 4: duplicate key 3f9a01c2'],
                ["{$good}key 3f9a01c3 active $key", 'line 4: there is more than one active key'],
                ["{$good}index $key", 'line 4: there is more than one index key'],
                ["{$good}secret $key", "line 4: expected 'key ID STATE BASE64' or 'index BASE64'"],
                [str_replace('active', 'retired', $good), 'there is no active key'],
                [str_replace('index', '#', $good), 'there is no index key'],
            ] as [$text, $message]
        ) {
            try {
                KeyRing::parse($text);
                self::fail("accepted: $text");
            } catch (KeyRingException $e) {
                self::assertSame($message, $e->getMessage());
            }
        }
    }

    public function testRandomKeys(): void
    {
        self::assertSame(32, strlen(KeyRing::randomKey()));
        self::assertSame(4096, strlen(KeyRing::randomKey(bytes: 4096)));
        self::assertNotSame(KeyRing::randomKey(), KeyRing::randomKey());
        foreach ([0, -1, 4097] as $bytes) {
            try {
                KeyRing::randomKey($bytes);
                self::fail("$bytes bytes passed");
            } catch (\ValueError $e) {
                self::assertSame("a key has 1 to 4096 bytes, not $bytes", $e->getMessage());
            }
        }
    }

    public function testExceptionsHaveOneParent(): void
    {
        foreach ([KeyRingException::class, DecryptionException::class] as $class) {
            self::assertTrue(is_subclass_of($class, FieldException::class));
        }
        self::assertSame(\RuntimeException::class, get_parent_class(FieldException::class));
    }

    public function testObjectsAreNeitherShownNorSerializedNorCloned(): void
    {
        $ring = Support::ring();
        $legacy = $ring->legacy(str_repeat('d', 32), str_repeat('v', 32));
        foreach ([$ring, $ring->field('t', 'c'), $legacy] as $object) {
            ob_start();
            var_dump($object);
            $shown = ob_get_clean() . print_r($object, true);
            self::assertStringNotContainsString('aaaa', $shown);
            self::assertStringNotContainsString('dddd', $shown);
            self::assertStringNotContainsString(Support::key('a'), $shown);
            try {
                serialize($object);
                self::fail('serialized');
            } catch (\Exception $e) {
                self::assertStringContainsString('is not allowed', $e->getMessage());
            }
            try {
                clone $object;
                self::fail('cloned');
            } catch (\Error) {
                $this->addToAssertionCount(1);
            }
        }
    }

    public function testBacktracesDoNotShowSecrets(): void
    {
        $ring = Support::ring();
        $field = $ring->field('t', 'c');
        $legacy = $ring->legacy(str_repeat('d', 32), str_repeat('v', 32));
        ini_set('zend.exception_ignore_args', '0');
        $calls = [
            fn () => $field->encrypt('THE SECRET', ''),
            fn () => $field->blindIndex('THE SECRET', 1),
            fn () => KeyRing::parse('THE SECRET'),
            fn () => $ring->legacy('THE SECRET', 'v'),
            fn () => $ring->legacy('d', 'THE SECRET'),
        ];
        foreach ($calls as $call) {
            try {
                $call();
                self::fail('no exception');
            } catch (\Throwable $e) {
                self::assertStringNotContainsString('THE SECRET', $e->getTraceAsString());
                self::assertStringContainsString('SensitiveParameterValue', $e->getTraceAsString());
            }
        }
        foreach ([[Legacy::class, 'encrypt', 0], [Field::class, 'encrypt', 0]] as [$class, $method, $parameter]) {
            $parameter = (new \ReflectionMethod($class, $method))->getParameters()[$parameter];
            self::assertCount(1, $parameter->getAttributes(\SensitiveParameter::class), "$class::$method");
        }
    }

    public function testOpenBasedir(): void
    {
        $path = Support::file(Support::text());
        $script = 'try { Quadrille\KeyRing::load(' . var_export($path, true) . '); echo "loaded"; }'
            . ' catch (Quadrille\KeyRingException $e) { echo "refused"; }';
        self::assertStringEndsWith('loaded', Support::bySame($script));
        $packages = dirname(__DIR__);
        self::assertStringEndsWith('refused', Support::bySame($script, "open_basedir=$packages"));
    }

    private function assertRefused(string $message, string $path): void
    {
        try {
            KeyRing::load($path);
            self::fail("loaded: $path");
        } catch (KeyRingException $e) {
            self::assertStringContainsString($message, $e->getMessage());
        }
    }
}
