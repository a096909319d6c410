<?php

declare(strict_types=1);

namespace Quadrille\Tests\Application;

use PHPUnit\Framework\TestCase;

require_once __DIR__ . '/Servers.php';
require_once __DIR__ . '/Process.php';
require_once __DIR__ . '/Database.php';
require_once __DIR__ . '/Migration.php';
require_once __DIR__ . '/../../example/Users.php';

/**
 * Migration of fields encrypted by PHP's mcrypt extension to the application's page, with a real database: detection,
 * dry run, report, and a migration that is killed repeatedly.
 */
final class McryptTest extends TestCase
{
    use Migration;

    private const ROWS = 600;

    /** Databases, with forms as applications had them. @return iterable<array{string, string, string, string}> */
    public static function databases(): iterable
    {
        yield 'MariaDB, 256-bit blocks' => ['mariadb', 'rijndael-256', 'cbc', 'base64'];
        yield 'PostgreSQL, 192-bit blocks' => ['postgresql', 'rijndael-192', 'cfb', 'hex'];
    }

    /** @dataProvider databases */
    public function testFromMcryptToEnvelopes(string $kind, string $cipher, string $mode, string $encoding): void
    {
        $this->servers = new Servers();
        if (!extension_loaded('mcrypt')) {
            self::markTestSkipped('php8.2-mcrypt is not installed: no mcrypt fields to test');
        }
        $this->database = $this->servers->$kind();
        $keys = $this->servers->keys();
        $ring = "$keys/fields.keys";
        $this->assertSaid(0, 'created, with the active key', 'field', 'keygen', $ring);
        $key = random_bytes(32);
        $this->writeByMcrypt($key, $cipher, $mode, $encoding);
        $right = $this->settings("$keys/mcrypt.conf", $key, $cipher, $mode, $encoding);
        $wrong = $this->settings("$keys/wrong.conf", random_bytes(32), $cipher, $mode, $encoding);

        $migrate = ['field', 'migrate', '--keys', $ring, '--database', $this->database->url, '--table', 'users',
            '--batch', '20', '--clear', '--index', 'phone_enc=phone_index:64', '--from', 'mcrypt'];
        foreach (\Users::COLUMNS as $column) {
            array_push($migrate, '--column', "$column:{$column}_enc");
        }
        $fromMcrypt = [...$migrate, '--mcrypt', $right];

        // A dry run detects a wrong key, before any write.
        $rows = self::ROWS;
        $this->assertSaid(2, "users: $rows rows have values that cannot be read", ...[...$migrate, '--mcrypt', $wrong, '--dry-run']);
        $this->assertSaid(0, "users: $rows rows would be re-encrypted", ...[...$fromMcrypt, '--dry-run']);
        self::assertSame(0, $this->rowsWhere('name_enc IS NOT NULL OR phone_index IS NOT NULL OR name IS NULL'));

        // A damaged value is named and stays; the rest is migrated, despite interruptions.
        $damaged = $this->damageOne();
        $kills = $this->killedUntilDone($fromMcrypt, null, [0, 2]);
        self::assertGreaterThan(2, $kills, 'the migration was killed too rarely');
        $this->assertSaid(2, $damaged, ...$fromMcrypt);
        self::assertSame(1, $this->rowsWhere('name IS NOT NULL'));
        self::assertSame($rows, $this->rowsWhere('phone_enc IS NOT NULL AND phone_index IS NOT NULL AND phone IS NULL'));
        $this->database->connect()->exec("DELETE FROM users WHERE id = '$damaged'");
        array_splice($this->users, (int) $damaged, 1);
        $this->assertSaid(0, 'users: 0 rows re-encrypted', ...$fromMcrypt);

        // The page still reads the keys of the older form.
        file_put_contents("$keys/old.keys", str_repeat(base64_encode(random_bytes(32)) . "\n", 2));
        chmod("$keys/old.keys", 0600);
        posix_geteuid() === 0 && chown("$keys/old.keys", 'www-data');
        foreach ([true, false] as $hasExtension) {
            $this->port = $this->servers->web('example/public', $this->database, $hasExtension);
            $this->assertPage($hasExtension ? 'by the extension' : 'in PHP');
            $this->assertFound($this->users[7]);
        }
    }

    /** Writes users as an application did before PHP 7.2; an id starts with the user's number. */
    private function writeByMcrypt(string $key, string $cipher, string $mode, string $encoding): void
    {
        $database = $this->database->connect();
        $insert = $database->prepare('INSERT INTO users (id, name, phone, email, address) VALUES (?, ?, ?, ?, ?)');
        $encode = $encoding === 'hex' ? bin2hex(...) : base64_encode(...);
        $stored = static function (string $plain) use ($key, $cipher, $mode, $encode): string {
            $size = @mcrypt_get_iv_size($cipher, $mode);
            $vector = $mode === 'ecb' ? '' : random_bytes($size);
            return $encode($vector . ($mode === 'ecb'
                ? @mcrypt_encrypt($cipher, $key, $plain, $mode)
                : @mcrypt_encrypt($cipher, $key, $plain, $mode, $vector)));
        };
        $database->beginTransaction();
        for ($i = 0; $i < self::ROWS; $i++) {
            $this->users[] = $user = self::user($i);
            $id = sprintf('%08d-0000-4000-8000-%012d', $i, random_int(0, 999_999));
            $insert->execute([$id, ...array_map($stored, array_values($user))]);
        }
        $database->commit();
    }

    private function settings(string $file, string $key, string $cipher, string $mode, string $encoding): string
    {
        $key = base64_encode($key);
        file_put_contents($file, "cipher: $cipher\nmode: $mode\nkey: base64:$key\nvector: front\nencoding: $encoding\n");
        chmod($file, 0600);
        posix_geteuid() === 0 && chown($file, 'www-data');
        return $file;
    }

    /** Replaces a user's name with an unreadable value; returns that user's id. */
    private function damageOne(): string
    {
        $database = $this->database->connect();
        $id = $database->query('SELECT id FROM users ORDER BY id LIMIT 1')->fetchColumn();
        $database->exec("UPDATE users SET name = 'not encrypted' WHERE id = '$id'");
        return $id;
    }
}
