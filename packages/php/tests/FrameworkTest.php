<?php

declare(strict_types=1);

use Doctrine\DBAL\Platforms\MariaDBPlatform;
use Illuminate\Database\Eloquent\Model;
use PHPUnit\Framework\TestCase;
use Quadrille\KeyRing;

/** The examples for frameworks, with Debian's packages of the frameworks. */
final class FrameworkTest extends TestCase
{
    public function testALaravelModelHoldsEnvelopesOfItsRow(): void
    {
        $this->load('Illuminate/Database', 'php-illuminate-database', 'EncryptedCast');
        EncryptedCast::useKeys(self::ring());
        $new = static fn (array $attributes) => (new class () extends Model {
            protected $table = 'users';
            protected $keyType = 'string';
            public $incrementing = false;
            protected $casts = ['phone' => EncryptedCast::class];
        })->setRawAttributes($attributes);
        $user = $new(['id' => '4f2c']);
        $user->phone = '+49 30 1234567';
        $stored = $user->getAttributes()['phone'];
        self::assertStringNotContainsString('1234567', $stored);
        self::assertSame('+49 30 1234567', $new(['id' => '4f2c', 'phone' => $stored])->phone);
        self::assertNull($new(['id' => '4f2c', 'phone' => null])->phone);
        try {
            $new(['id' => '9b01', 'phone' => $stored])->phone;
            self::fail('an envelope belongs to its row');
        } catch (RuntimeException $error) {
            self::assertStringContainsString('decrypt', $error->getMessage());
        }
        $this->expectException(LogicException::class);
        $new([])->phone = 'x';
    }

    public function testADoctrineTypeEncryptsAndDecrypts(): void
    {
        $this->load('Doctrine/DBAL', 'php-doctrine-dbal', 'EncryptedType');
        $type = EncryptedType::of(self::ring()->field('users', 'phone'));
        Doctrine\DBAL\Types\Type::getTypeRegistry()->register('users_phone', $type);
        $connection = Doctrine\DBAL\Types\Type::getType('users_phone');
        $platform = new MariaDBPlatform();
        $stored = $connection->convertToDatabaseValue('+49 30 1234567', $platform);
        self::assertStringNotContainsString('1234567', $stored);
        self::assertSame('+49 30 1234567', $connection->convertToPHPValue($stored, $platform));
        $stream = fopen('php://memory', 'r+');
        fwrite($stream, $stored);
        rewind($stream);
        self::assertSame('+49 30 1234567', $connection->convertToPHPValue($stream, $platform), 'a PostgreSQL stream');
        self::assertNull($connection->convertToPHPValue(null, $platform));
        self::assertNotSame('', $type->getSQLDeclaration(['name' => 'phone'], $platform));
    }

    private static function ring(): KeyRing
    {
        $key = base64_encode(str_repeat('a', 32));
        return KeyRing::parse("quadrille field keys 1\nkey 3f9a01c2 active $key\nindex $key\n");
    }

    private function load(string $path, string $package, string $example): void
    {
        $autoload = "/usr/share/php/$path/autoload.php";
        if (!is_file($autoload)) {
            fwrite(STDERR, "SKIPPED: $package is not installed, so $example is not tested\n");
            self::markTestSkipped("$package is not installed");
        }
        require_once $autoload;
        require_once __DIR__ . "/../example/frameworks/$example.php";
    }
}
