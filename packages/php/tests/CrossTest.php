<?php

declare(strict_types=1);

namespace Quadrille\Tests;

use PHPUnit\Framework\TestCase;

/** The two implementations read each other's output. */
final class CrossTest extends TestCase
{
    private const LENGTHS = [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 95, 96, 97, 127, 128, 129, 500, 2047, 2048, 2049, 5000];

    private function byTheOther(string $script): array
    {
        $field = KeyRingTest::FIELD;
        $ring = strstr($field, '->field', true);
        $legacy = '$legacy = ' . $ring . '->legacy(str_repeat("d", 32), str_repeat("v", 32));';
        $output = Support::byTheOther("use Quadrille\\KeyRing; \$field = $field; $legacy $script");
        if ($output === null) {
            self::markTestSkipped('QUADRILLE_EXTENSION does not name the extension');
        }
        $result = json_decode($output, true);
        self::assertIsArray($result, $output);
        return array_map(base64_decode(...), $result);
    }

    private static function plain(int $length): string
    {
        return substr(str_repeat('Grüße aus Köln. ', 500), 0, $length);
    }

    public function testTheOtherReadsThis(): void
    {
        $field = Support::ring()->field('users', 'email');
        $envelopes = array_map(static fn (int $n) => $field->encrypt(self::plain($n), $n), self::LENGTHS);
        $given = var_export(array_map(base64_encode(...), array_combine(self::LENGTHS, $envelopes)), true);
        $plains = $this->byTheOther("foreach ($given as \$row => \$e) { \$o[] ="
            . ' base64_encode($field->decrypt(base64_decode($e), $row)); } echo json_encode($o);');
        self::assertSame(array_map(self::plain(...), self::LENGTHS), $plains);
    }

    public function testThisReadsTheOther(): void
    {
        $lengths = var_export(self::LENGTHS, true);
        $envelopes = $this->byTheOther("foreach ($lengths as \$n) { \$o[] = base64_encode(\$field->encrypt("
            . 'substr(str_repeat("Grüße aus Köln. ", 500), 0, $n), $n)); } echo json_encode($o);');
        $field = Support::ring()->field('users', 'email');
        foreach (self::LENGTHS as $i => $length) {
            self::assertSame(self::plain($length), $field->decrypt($envelopes[$i], $length));
            self::assertFalse($field->needsRotation($envelopes[$i]));
        }
    }

    public function testIndexesAndTheOlderForm(): void
    {
        [$index, $older] = $this->byTheOther('echo json_encode(array_map("base64_encode", '
            . '[$field->blindIndex("Grüße", 128), $legacy->encrypt("Grüße")]));');
        $ring = Support::ring();
        self::assertSame($ring->field('users', 'email')->blindIndex('Grüße', 128), $index);
        $legacy = $ring->legacy(str_repeat('d', 32), str_repeat('v', 32));
        self::assertSame('Grüße', $legacy->decrypt($older));
        $given = var_export($legacy->encrypt('Grüße'), true);
        self::assertSame(['Grüße'], $this->byTheOther("echo json_encode([base64_encode(\$legacy->decrypt($given))]);"));
    }
}
