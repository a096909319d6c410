<?php

declare(strict_types=1);

namespace Quadrille\Tests\Application;

use PHPUnit\Framework\TestCase;
use Quadrille\KeyRing;

require_once __DIR__ . '/Servers.php';
require_once __DIR__ . '/Process.php';
require_once __DIR__ . '/Database.php';
require_once __DIR__ . '/Migration.php';
require_once __DIR__ . '/../../example/Users.php';

/**
 * The worked application behind nginx and php-fpm: migration from the older form to envelopes, and from one key to
 * the next, while it serves and the migration is killed repeatedly.
 */
final class ApplicationTest extends TestCase
{
    private const ROWS = 1200;
    private const PAGES = 'example/public';

    private const TEST_PAGES = 'tests/application/pages';

    use Migration;

    /** @return iterable<array{string}> */
    public static function databases(): iterable
    {
        yield 'MariaDB' => ['mariadb'];
        yield 'PostgreSQL' => ['postgresql'];
    }

    /** @dataProvider databases */
    public function testFromTheOlderFormToRotatedKeys(string $kind): void
    {
        $this->servers = new Servers();
        $this->database = $this->servers->$kind();
        $keys = $this->servers->keys();
        $ring = "$keys/fields.keys";
        $this->assertSaid(0, 'created, with the active key', 'field', 'keygen', $ring);
        $this->writeOlderForm("$keys/old.keys");
        $this->port = $this->servers->web(self::PAGES, $this->database, true);
        $this->assertPage('the older form');

        $table = ['field', 'migrate', '--keys', $ring, '--database', $this->database->url, '--table', 'users', '--batch', '20'];
        $fromLegacy = [...$table, '--from', 'legacy', '--legacy-keys', "$keys/old.keys", '--clear',
            '--index', 'phone_enc=phone_index:64'];
        foreach (\Users::COLUMNS as $column) {
            array_push($fromLegacy, '--column', "$column:{$column}_enc");
            array_push($table, '--column', "{$column}_enc");
        }
        $kills = $this->killedUntilDone($fromLegacy);
        self::assertGreaterThan(2, $kills, 'the migration was killed too rarely');
        $this->assertSaid(0, 'users: 0 rows re-encrypted', ...$fromLegacy);
        self::assertSame(0, $this->rowsWhere('name IS NOT NULL OR phone IS NOT NULL OR email IS NOT NULL OR address IS NOT NULL'));
        self::assertSame(0, $this->rowsWhere('phone_index IS NULL'));
        $this->assertPage('migrated');
        $this->assertFound($this->users[7]);

        // Rotation during writes.
        $old = KeyRing::load($ring)->keys()[0]['id'];
        $this->assertSaid(0, 'activated', 'field', 'keygen', '--rotate', $ring);
        $users = new \Users($this->database->connect(), KeyRing::load($ring));
        $kills = $this->killedUntilDone($table, fn () => $this->add($users));
        self::assertGreaterThan(2, $kills, 'the rotation was killed too rarely');
        $this->assertSaid(0, 'users: 0 rows re-encrypted', ...$table);
        $this->assertSaid(0, 'retired', 'field', 'keygen', '--retire', $old, $ring);
        $this->assertPage('rotated, with the old key retired');
        $this->assertFound($this->users[7]);

        // The same with the implementation in PHP.
        $this->port = $this->servers->web(self::PAGES, $this->database, false);
        $this->assertPage('without the extension');
        $this->assertFound(end($this->users));

        // Unreadable values are named, stay, and do not block others.
        $this->assertSaid(0, 'activated', 'field', 'keygen', '--rotate', $ring);
        $id = $this->database->connect()->query('SELECT id FROM users ORDER BY id LIMIT 1')->fetchColumn();
        $this->database->connect()->exec("UPDATE users SET name_enc = phone_enc WHERE id = '$id'");
        $this->assertSaid(2, $id, ...$table);
        $this->assertSaid(2, "users: 0 rows re-encrypted", ...$table);
    }

    /** Workers that fork from a process that has drawn nonces draw different ones. */
    public function testWorkersRepeatNoNonce(): void
    {
        $this->servers = new Servers();
        $preload = 'opcache.preload=' . $this->servers->site(self::TEST_PAGES . '/nonces.php');
        $nowhere = new Database('none', 'none', 'none');
        $this->servers->keys();
        $this->port = $this->servers->web(self::TEST_PAGES, $nowhere, true, [$preload], 6);
        $workers = $nonces = [];
        for ($request = 0; $request < 120; $request++) {
            $lines = explode("\n", trim($this->get('/nonces.php')));
            $workers[array_shift($lines)] = true;
            self::assertCount(100, $lines);
            array_push($nonces, ...$lines);
        }
        self::assertGreaterThanOrEqual(4, count($workers), 'too few workers responded');
        self::assertCount(count($nonces), array_unique($nonces), 'a nonce was repeated');
        // The nonces of preloading, before the fork, are in php-fpm's own output.
        $preloaded = glob("{$this->servers->folder}/*php-fpm.log");
        preg_match_all('/\b[0-9a-f]{48}\b/', file_get_contents($preloaded[0]), $before);
        self::assertCount(100, $before[0], 'no nonces were drawn before the fork, so the test is void');
        self::assertEmpty(array_intersect($before[0], $nonces), 'a worker repeated a nonce of its parent');
    }

    public function testAWorkerSurvivesThatMemoryRunsOut(): void
    {
        $this->servers = new Servers();
        $this->servers->keys();
        $nowhere = new Database('none', 'none', 'none');
        $this->port = $this->servers->web(self::TEST_PAGES, $nowhere, true, [], 1);
        $pid = strtok($this->get('/nonces.php'), "\n");
        for ($i = 0; $i < 20; $i++) {
            self::assertStringContainsString('Allowed memory size', $this->get('/exhaust.php'));
            self::assertSame($pid, strtok($this->get('/nonces.php'), "\n"), 'the worker crashed');
        }
    }

    /** Writes users in the older form, with OpenSSL as such software does. */
    private function writeOlderForm(string $keys): void
    {
        [$data, $vector] = [random_bytes(32), random_bytes(32)];
        file_put_contents($keys, base64_encode($data) . "\n" . base64_encode($vector) . "\n");
        chmod($keys, 0600);
        posix_geteuid() === 0 && chown($keys, 'www-data');
        $database = $this->database->connect();
        $insert = $database->prepare('INSERT INTO users (id, name, phone, email, address) VALUES (?, ?, ?, ?, ?)');
        $database->beginTransaction();
        for ($i = 0; $i < self::ROWS; $i++) {
            $this->users[] = $user = self::user($i);
            $older = static function (string $plain) use ($data, $vector): string {
                $iv = random_bytes(16);
                $bare = OPENSSL_RAW_DATA | OPENSSL_ZERO_PADDING;
                return openssl_encrypt($plain, 'aes-256-cbc', $data, 0, $iv) . '#'
                    . base64_encode(openssl_encrypt($iv, 'aes-256-ecb', $vector, $bare));
            };
            $insert->execute([\Users::uuid(), ...array_map($older, array_values($user))]);
        }
        $database->commit();
    }

    private function add(\Users $users): void
    {
        $this->users[] = $user = self::user(count($this->users));
        $users->add($user);
    }
}
