<?php

declare(strict_types=1);

namespace Quadrille\Tests;

use PHPUnit\Framework\TestCase;
use Quadrille\DecryptionException;
use Quadrille\Legacy;

final class LegacyTest extends TestCase
{
    private Legacy $legacy;
    private string $data;
    private string $vector;

    protected function setUp(): void
    {
        $this->data = str_repeat("\1", 32);
        $this->vector = str_repeat("\2", 32);
        $this->legacy = Support::ring()->legacy($this->data, $this->vector);
    }

    /** Fields as written by such software, with the vector's block bare and padded. */
    public function testWhatOpensslWroteIsRead(): void
    {
        foreach ([0, OPENSSL_ZERO_PADDING] as $padding) {
            foreach (['', 'Grüße', str_repeat('#', 16), random_bytes(1000)] as $plain) {
                $iv = random_bytes(16);
                $field = openssl_encrypt($plain, 'aes-256-cbc', $this->data, 0, $iv) . '#'
                    . base64_encode(openssl_encrypt($iv, 'aes-256-ecb', $this->vector, OPENSSL_RAW_DATA | $padding));
                self::assertSame($plain, $this->legacy->decrypt($field));
            }
        }
    }

    public function testWhatIsWrittenOpensslReads(): void
    {
        [$ciphertext, $encrypted] = explode('#', $this->legacy->encrypt('Grüße'));
        $bare = OPENSSL_RAW_DATA | OPENSSL_ZERO_PADDING;
        $iv = openssl_decrypt(base64_decode($encrypted), 'aes-256-ecb', $this->vector, $bare);
        self::assertSame('Grüße', openssl_decrypt($ciphertext, 'aes-256-cbc', $this->data, 0, $iv));
        self::assertNotSame($this->legacy->encrypt('x'), $this->legacy->encrypt('x'));
    }

    public function testWhateverIsWrongTheErrorIsTheSame(): void
    {
        $good = $this->legacy->encrypt('x');
        [$ciphertext, $vector] = explode('#', $good);
        $block = base64_encode(str_repeat("\x09", 16));
        // After a random vector, one block in 256 ends like padding, and opens.
        $bare = OPENSSL_RAW_DATA | OPENSSL_ZERO_PADDING;
        $fixed = base64_encode(openssl_encrypt(str_repeat("\0", 16), 'aes-256-ecb', $this->vector, $bare));
        foreach (
            [
                '', '#', "#$vector", "$ciphertext#", $ciphertext, "$good#$vector", "$ciphertext#AAAA", "AAAA#$vector",
                "!$good", "$good\n", " $good", "$block#$fixed", "\xff#\xff", "$ciphertext#$block$block",
            ] as $field
        ) {
            try {
                $this->legacy->decrypt($field);
                self::fail("it opened: $field");
            } catch (DecryptionException $e) {
                self::assertSame('the field cannot be decrypted', $e->getMessage());
            }
        }
    }

    public function testKeysHave32Bytes(): void
    {
        foreach ([[31, 32], [32, 33], [0, 0]] as [$data, $vector]) {
            try {
                Support::ring()->legacy(str_repeat('d', $data), str_repeat('v', $vector));
                self::fail('a short key passed');
            } catch (\ValueError $e) {
                self::assertStringContainsString('32 bytes', $e->getMessage());
            }
        }
    }
}
