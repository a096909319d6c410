<?php

declare(strict_types=1);

namespace Quadrille\Tests;

use PHPUnit\Framework\TestCase;
use Quadrille\Internal\Xaes256Gcm;

/** The vectors of https://c2sp.org/XAES-256-GCM, with the cipher in PHP. The extension's is tested in crates/field. */
final class XaesTest extends TestCase
{
    public function testPublishedVectors(): void
    {
        $nonce = 'ABCDEFGHIJKLMNOPQRSTUVWX';
        foreach (
            [
                ["\1", '', 'ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271'],
                ["\3", 'c2sp.org/XAES-256-GCM', '986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d'],
            ] as [$byte, $aad, $expected]
        ) {
            $cipher = new Xaes256Gcm(str_repeat($byte, 32));
            $sealed = $cipher->seal($nonce, $aad, 'XAES-256-GCM');
            self::assertSame($expected, bin2hex($sealed));
            self::assertSame('XAES-256-GCM', $cipher->open($nonce, $aad, substr($sealed, 0, -16), substr($sealed, -16)));
            self::assertFalse($cipher->open($nonce, "$aad.", substr($sealed, 0, -16), substr($sealed, -16)));
        }
    }
}
