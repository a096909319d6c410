<?php

declare(strict_types=1);

namespace Quadrille\Tests\Application;

use PHPUnit\Framework\TestCase;
use Quadrille\KeyRing;

require_once __DIR__ . '/Servers.php';
require_once __DIR__ . '/Process.php';
require_once __DIR__ . '/Database.php';
require_once __DIR__ . '/Migration.php';

/** Tables in which a migration could lose what it moves: it gets all of it across, or refuses to begin. */
final class UnsafeTablesTest extends TestCase
{
    use Migration;

    private const NAME = 'Jürgen Groß';

    private \PDO $connection;
    private string $ring;

    /** @return iterable<array{string, string, string}> */
    public static function databases(): iterable
    {
        yield 'MariaDB' => ['mariadb', 'varchar(100) CHARACTER SET latin1', "varbinary(200) NOT NULL DEFAULT ''"];
        yield 'PostgreSQL' => ['postgresql', 'varchar(100)', "bytea NOT NULL DEFAULT ''"];
    }

    /**
     * A new NOT NULL column is empty, which does not count as a value; text is encrypted as applications read it.
     * @dataProvider databases
     */
    public function testTextGoesIntoANewColumnThatMayNotBeNull(string $kind, string $text, string $binary): void
    {
        $this->begin($kind);
        $this->connection->exec("CREATE TABLE people (id int PRIMARY KEY, name $text, name_enc $binary)");
        $this->connection->prepare('INSERT INTO people (id, name) VALUES (1, ?), (2, NULL)')->execute([self::NAME]);
        $this->assertSaid(0, 'people: 1 rows re-encrypted', ...$this->migrate('name:name_enc'));
        self::assertSame(self::NAME, $this->decrypted());
        self::assertSame([null, null], $this->values('name'));
        $this->assertSaid(0, 'people: 0 rows re-encrypted', ...$this->migrate('name:name_enc'));
    }

    public function testWhatWouldLoseValuesIsRefused(): void
    {
        $this->begin('mariadb');
        foreach ([
            'which has no transactions' => '(id int PRIMARY KEY, name text, name_enc varbinary(200)) ENGINE = MyISAM',
            'does not identify each row' => '(id int, tenant int, name text, name_enc varbinary(200), PRIMARY KEY (tenant, id))',
            'of any length' => '(id int PRIMARY KEY, name text, name_enc binary(200))',
            'cannot be cleared' => "(id int PRIMARY KEY, name varchar(100) NOT NULL, name_enc varbinary(200))",
            // The server would truncate the envelope, and only warn.
            'Data too long' => '(id int PRIMARY KEY, name text, name_enc varbinary(80))',
        ] as $complaint => $table) {
            $this->connection->exec("DROP TABLE IF EXISTS people; CREATE TABLE people $table");
            $this->connection->prepare('INSERT INTO people (id, name) VALUES (1, ?)')->execute([self::NAME]);
            $this->assertSaid(2, $complaint, ...$this->migrate('name:name_enc'));
            self::assertSame([[self::NAME], [null]], [$this->values('name'), $this->values('name_enc')], $complaint);
        }
    }

    public function testAnIdOfPostgresqlNamesOneRow(): void
    {
        $this->begin('postgresql');
        foreach (['id int', 'id int UNIQUE', 'id int NOT NULL, UNIQUE (id, name)'] as $id) {
            $this->connection->exec("DROP TABLE IF EXISTS people; CREATE TABLE people ($id, name text, name_enc bytea)");
            $this->assertSaid(2, 'does not identify each row', ...$this->migrate('name:name_enc'));
        }
        $this->connection->exec('DROP TABLE people; CREATE TABLE people (id int NOT NULL UNIQUE, name text, name_enc bytea)');
        $this->assertSaid(0, 'people: 0 rows re-encrypted', ...$this->migrate('name:name_enc'));
    }

    private function begin(string $kind): void
    {
        $this->servers = new Servers();
        $this->database = $this->servers->$kind();
        $this->connection = $this->database->connect();
        if ($kind === 'mariadb') {
            // As on many servers of old applications.
            $this->connection->exec("SET NAMES utf8mb4; SET sql_mode = ''; SET GLOBAL sql_mode = ''");
        }
        $this->ring = $this->servers->keys() . '/fields.keys';
        $this->assertSaid(0, 'created, with the active key', 'field', 'keygen', $this->ring);
    }

    /** @return list<string> */
    private function migrate(string $column): array
    {
        return ['field', 'migrate', '--keys', $this->ring, '--database', $this->database->url, '--table', 'people',
            '--column', $column, '--from', 'plain', '--clear'];
    }

    private function decrypted(): string
    {
        $envelope = $this->values('name_enc')[0];
        $envelope = is_resource($envelope) ? stream_get_contents($envelope) : $envelope;
        return KeyRing::load($this->ring)->field('people', 'name_enc')->decrypt($envelope, '1');
    }

    private function values(string $column): array
    {
        return $this->connection->query("SELECT $column FROM people ORDER BY id")->fetchAll(\PDO::FETCH_COLUMN);
    }
}
