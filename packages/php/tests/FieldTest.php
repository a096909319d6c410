<?php

declare(strict_types=1);

namespace Quadrille\Tests;

use PHPUnit\Framework\TestCase;
use Quadrille\DecryptionException;
use Quadrille\Field;

final class FieldTest extends TestCase
{
    private Field $email;

    protected function setUp(): void
    {
        $this->email = Support::ring()->field('users', 'email');
    }

    public function testWhatIsEncryptedIsDecrypted(): void
    {
        foreach ([0, 1, 15, 16, 17, 64, 95, 96, 97, 1000, 2048, 2049, 100_000] as $length) {
            $plain = $length === 0 ? '' : random_bytes($length);
            $envelope = $this->email->encrypt($plain, row: 1);
            self::assertSame($length + 77, strlen($envelope));
            self::assertSame("\x01\x3f\x9a\x01\xc2", substr($envelope, 0, 5));
            self::assertSame($plain, $this->email->decrypt($envelope, row: 1));
        }
    }

    public function testSixteenMebibytes(): void
    {
        $plain = random_bytes(16 << 20);
        $envelope = $this->email->encrypt($plain, 1);
        self::assertTrue($plain === $this->email->decrypt($envelope, 1));
        $envelope[8 << 20] = chr(ord($envelope[8 << 20]) ^ 1);
        $this->assertUnreadable($envelope, 1);
    }

    public function testEveryFlippedByteIsNoticed(): void
    {
        $envelope = $this->email->encrypt('user@example.com', 1);
        for ($i = 0; $i < strlen($envelope); $i++) {
            foreach ([1, 0x80, 0xff] as $bits) {
                $changed = $envelope;
                $changed[$i] = chr(ord($changed[$i]) ^ $bits);
                $this->assertUnreadable($changed, 1);
            }
        }
    }

    public function testTruncatedAndExtendedEnvelopesAreRefused(): void
    {
        $envelope = $this->email->encrypt('user@example.com', 1);
        for ($i = 0; $i < strlen($envelope); $i++) {
            $this->assertUnreadable(substr($envelope, 0, $i), 1);
        }
        $this->assertUnreadable($envelope . "\0", 1);
    }

    public function testAnEnvelopeBelongsToItsRowColumnAndTable(): void
    {
        $envelope = $this->email->encrypt('x', 1);
        $this->assertUnreadable($envelope, 2);
        $this->assertUnreadable($envelope, '01');
        $ring = Support::ring();
        $this->assertUnreadable($envelope, 1, $ring->field('users', 'phone'));
        $this->assertUnreadable($envelope, 1, $ring->field('admins', 'email'));
        // Names may hold any bytes.
        $envelope = $ring->field("a\0b", 'c')->encrypt('text', 1);
        $this->assertUnreadable($envelope, 1, $ring->field('a', "b\0c"));
    }

    public function testWrongAndRetiredKeys(): void
    {
        $envelope = $this->email->encrypt('x', 1);
        $a = Support::key('a');
        $b = Support::key('b');
        foreach (
            [
                ['key 3f9a01c2 active ' . $b],
                ['key 3f9a01c3 active ' . $a],
                ['key 3f9a01c2 retired ' . $a, 'key 77777777 active ' . $b],
            ] as $keys
        ) {
            $field = Support::ring(...$keys)->field('users', 'email');
            $this->assertUnreadable($envelope, 1, $field);
            try {
                $field->needsRotation($envelope);
                self::fail('needsRotation() knew the key');
            } catch (DecryptionException $e) {
                self::assertSame('the field cannot be decrypted', $e->getMessage());
            }
        }
    }

    public function testRotation(): void
    {
        $envelope = $this->email->encrypt('x', 1);
        self::assertFalse($this->email->needsRotation($envelope));
        $ring = Support::ring('key 3f9a01c2 decrypt-only ' . Support::key('a'), 'key 12345678 active ' . Support::key('b'));
        $field = $ring->field('users', 'email');
        self::assertTrue($field->needsRotation($envelope));
        $rotated = $field->rotate($envelope, row: 1);
        self::assertFalse($field->needsRotation($rotated));
        self::assertSame("\x12\x34\x56\x78", substr($rotated, 1, 4));
        self::assertSame('x', $field->decrypt($rotated, 1));
        self::assertSame($this->email->blindIndex('x'), $field->blindIndex('x'), 'rotation changed the blind index');
    }

    public function testIntegersAndTheirDigitsNameTheSameRow(): void
    {
        foreach ([0, 5, -1, PHP_INT_MAX, PHP_INT_MIN] as $row) {
            $envelope = $this->email->encrypt('x', $row);
            self::assertSame('x', $this->email->decrypt($envelope, (string) $row));
        }
    }

    public function testARowIsNeeded(): void
    {
        foreach (['', str_repeat('x', 256)] as $row) {
            try {
                $this->email->encrypt('x', $row);
                self::fail('no row was needed');
            } catch (\ValueError $e) {
                self::assertStringContainsString('1 to 255 bytes', $e->getMessage());
            }
        }
        $this->expectException(\TypeError::class);
        $this->email->encrypt('x', null);
    }

    public function testNamesHaveOneTo255Bytes(): void
    {
        Support::ring()->field(str_repeat('t', 255), str_repeat('c', 255));
        foreach ([['', 'c'], ['t', ''], [str_repeat('t', 256), 'c'], ['t', str_repeat('c', 256)]] as [$table, $column]) {
            try {
                Support::ring()->field($table, $column);
                self::fail('a bad name passed');
            } catch (\ValueError $e) {
                self::assertStringContainsString('table and column', $e->getMessage());
            }
        }
    }

    public function testMany(): void
    {
        $envelopes = $rows = $plains = [];
        foreach (['a' => 10, 'b' => 'x', 7 => 30] as $key => $row) {
            $plains[$key] = "value of $key";
            $envelopes[$key] = $this->email->encrypt($plains[$key], $row);
            $rows[] = $row;
        }
        $envelopes['none'] = null;
        $plains['none'] = null;
        $rows[] = 40;
        self::assertSame($plains, $this->email->decryptMany($envelopes, rows: $rows));
        self::assertSame([], $this->email->decryptMany([], []));
        try {
            $this->email->decryptMany($envelopes, [1]);
            self::fail('a row is missing');
        } catch (\ValueError $e) {
            self::assertSame('there are 4 envelopes and 1 rows', $e->getMessage());
        }
        [$rows[0], $rows[1]] = [$rows[1], $rows[0]];
        $this->expectException(DecryptionException::class);
        $this->email->decryptMany($envelopes, $rows);
    }

    public function testStreamsAsPdoGivesThem(): void
    {
        $stream = static function (string $bytes) {
            $stream = fopen('php://memory', 'w+');
            fwrite($stream, $bytes);
            rewind($stream);
            return $stream;
        };
        $envelope = $this->email->encrypt('x', 1);
        self::assertSame('x', $this->email->decrypt($stream($envelope), 1));
        self::assertSame(['x'], $this->email->decryptMany([$stream($envelope)], [1]));
        self::assertFalse($this->email->needsRotation($stream($envelope)));
        self::assertSame('x', $this->email->decrypt($this->email->rotate($stream($envelope), 1), 1));
        $this->assertUnreadable($stream(''), 1);
        $this->expectException(\TypeError::class);
        $this->email->decrypt([], 1);
    }

    public function testBlindIndexes(): void
    {
        $index = $this->email->blindIndex('user@example.com');
        self::assertMatchesRegularExpression('/^[0-9a-f]{16}$/', $index);
        self::assertSame($index, $this->email->blindIndex('user@example.com', bits: 64));
        self::assertStringStartsWith($index, $this->email->blindIndex('user@example.com', bits: 256));
        self::assertNotSame($index, $this->email->blindIndex('User@example.com'));
        self::assertNotSame($index, Support::ring()->field('users', 'phone')->blindIndex('user@example.com'));
        foreach ([-8, 0, 7, 63, 264, PHP_INT_MAX] as $bits) {
            try {
                $this->email->blindIndex('x', $bits);
                self::fail("$bits bits passed");
            } catch (\ValueError $e) {
                self::assertSame('a blind index has 8 to 256 bits, a multiple of 8', $e->getMessage());
            }
        }
    }

    /** Nonces do not repeat, also from a pool that was filled before the fork, and in grandchildren. */
    public function testForksRepeatNoNonce(): void
    {
        $email = $this->email;
        $nonces = static fn () => substr($email->encrypt('', 1), 37, 24);
        $seen = [$nonces()];
        $pipes = [];
        for ($child = 0; $child < 8; $child++) {
            $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
            $pid = pcntl_fork();
            if ($pid === 0) {
                $grandchild = $child % 2 ? pcntl_fork() : 0;
                for ($i = 0; $i < 300; $i++) {
                    fwrite($pair[1], $nonces());
                }
                $grandchild > 0 && pcntl_waitpid($grandchild, $status);
                posix_kill(posix_getpid(), SIGKILL);
            }
            fclose($pair[1]);
            $pipes[$pid] = $pair[0];
        }
        foreach ($pipes as $pid => $pipe) {
            array_push($seen, ...str_split(stream_get_contents($pipe), 24));
            pcntl_waitpid($pid, $status);
        }
        for ($i = 0; $i < 300; $i++) {
            $seen[] = $nonces();
        }
        self::assertCount(1 + 12 * 300 + 300, $seen);
        self::assertCount(count($seen), array_unique($seen), 'a nonce was repeated');
    }

    public function testNothingLeaks(): void
    {
        $envelope = $this->email->encrypt(str_repeat('x', 10_000), 1);
        $work = function () use ($envelope): void {
            $ring = Support::ring();
            $email = $ring->field('users', 'email');
            $email->rotate($envelope, 1);
            $email->decryptMany([$envelope, null], [1, 2]);
            $email->blindIndex('x');
            $ring->keys();
            $legacy = $ring->legacy(str_repeat('d', 32), str_repeat('v', 32));
            $legacy->decrypt($legacy->encrypt(str_repeat('x', 10_000)));
            try {
                $email->decrypt("$envelope ", 1);
            } catch (DecryptionException) {
            }
        };
        array_map($work, range(1, 20));
        $before = memory_get_usage();
        array_map($work, range(1, 500));
        self::assertLessThan(5_000, memory_get_usage() - $before);
    }

    /** A fatal error is PHP's own, and not a crash. */
    public function testMemoryThatRunsOut(): void
    {
        foreach (['encrypt($x, 1)', 'decrypt($x, 1)', 'rotate($y, 1)'] as $call) {
            $script = '$f = ' . KeyRingTest::FIELD . '; $y = $f->encrypt(str_repeat("y", 5 << 20), 1);'
                . '$x = str_repeat("x", 12 << 20); echo "before\n"; $z = $f->' . $call . '; echo "after\n";';
            $script = 'use Quadrille\KeyRing;' . $script;
            $output = Support::bySame($script, 'memory_limit=22M');
            self::assertStringContainsString("before\n", $output);
            self::assertMatchesRegularExpression(
                $call[0] === 'd' ? '/Allowed memory size|cannot be decrypted/' : '/Allowed memory size/',
                $output,
            );
            self::assertStringNotContainsString('after', $output);
        }
    }

    private function assertUnreadable(mixed $envelope, int|string $row, ?Field $field = null): void
    {
        try {
            ($field ?? $this->email)->decrypt($envelope, $row);
        } catch (DecryptionException $e) {
            // addToAssertionCount: 16 MiB in an assertion's message would take longer than the test.
            $this->addToAssertionCount(1);
            $e->getMessage() === 'the field cannot be decrypted' or self::fail($e->getMessage());
            $e->getCode() === 0 && $e->getPrevious() === null or self::fail('the error says more than it should');
            return;
        }
        self::fail('it opened');
    }
}
