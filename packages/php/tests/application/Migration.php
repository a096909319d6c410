<?php

declare(strict_types=1);

namespace Quadrille\Tests\Application;

/** Helpers for tests of the application: migrations that are killed repeatedly, and the page's content meanwhile. */
trait Migration
{
    /** Number of times that a migration is kept from ending before it is killed. */
    private static int $held = 3;

    private Servers $servers;
    private Database $database;
    private int $port;
    /** Expected content of the page. @var list<array<string, string>> */
    private array $users = [];

    protected function tearDown(): void
    {
        $this->servers->stop();
    }

    private static function user(int $i): array
    {
        return [
            'name' => "Jürgen <$i>",
            'phone' => sprintf('+49 30 %07d', $i),
            'email' => "user$i@example.com",
            'address' => "Straße $i, 10115 Berlin",
        ];
    }

    /**
     * Starts a migration and kills it at a random moment, until one run ends by itself. The page is checked in
     * between. The first runs are blocked by row locks, so that they do not end before the kill even on a fast
     * machine.
     */
    private function killedUntilDone(array $arguments, ?callable $meanwhile = null, array $statuses = [0]): int
    {
        $holder = $this->database->connect();
        for ($kills = 0; $kills < 100; $kills++) {
            $kills < self::$held && $this->hold($holder);
            $process = $this->servers->quadrilleInBackground(...$arguments);
            $end = microtime(true) + random_int(5_000, 30_000 + 20_000 * $kills) / 1e6;
            while (microtime(true) < $end && $process->isRunning()) {
                $meanwhile && $meanwhile();
                usleep(5_000);
            }
            if (!$process->isRunning()) {
                self::assertContains($process->wait(), $statuses, $process->said());
                return $kills;
            }
            $process->kill();
            $holder->inTransaction() && $holder->rollBack();
            if ($kills % 4 === 0) {
                isset($this->port) && $this->assertPage("after kill $kills");
            }
        }
        self::fail('the migration does not finish: ' . $process->said());
    }

    /** Locks the last rows, one by one, so that gaps between them stay unlocked and rows can be added meanwhile. */
    private function hold(\PDO $holder): void
    {
        $last = $holder->query('SELECT id FROM users ORDER BY id DESC LIMIT 20')->fetchAll(\PDO::FETCH_COLUMN);
        $holder->beginTransaction();
        $lock = $holder->prepare('SELECT id FROM users WHERE id = ? FOR UPDATE');
        foreach ($last as $id) {
            $lock->execute([$id]);
            $lock->fetchAll();
        }
    }

    private function assertSaid(int $status, string $text, string ...$arguments): void
    {
        [$found, $said] = $this->servers->quadrille(...$arguments);
        self::assertSame($status, $found, $said);
        self::assertStringContainsString($text, $said);
    }

    /** Checks that the page shows every user, once and correctly. */
    private function assertPage(string $when): void
    {
        self::assertSame($this->expected($this->users), $this->rows('/'), $when);
    }

    private function assertFound(array $user): void
    {
        self::assertSame($this->expected([$user]), $this->rows('/?phone=' . urlencode($user['phone'])));
        self::assertSame([], $this->rows('/?phone=unknown'));
    }

    /** @return list<string> */
    private function expected(array $users): array
    {
        $row = static fn (array $user) => '<tr>' . implode('', array_map(
            static fn (string $value) => '<td>' . htmlspecialchars($value) . '</td>',
            $user,
        )) . '</tr>';
        $rows = array_map($row, $users);
        sort($rows);
        return $rows;
    }

    /** @return list<string> */
    private function rows(string $path): array
    {
        preg_match_all('#<tr>.*</tr>#', $this->get($path), $matches);
        sort($matches[0]);
        return $matches[0];
    }

    private function get(string $path): string
    {
        $context = stream_context_create(['http' => ['ignore_errors' => true, 'timeout' => 60]]);
        $answer = file_get_contents("http://127.0.0.1:$this->port$path", false, $context);
        return $answer === false ? '' : $answer;
    }

    private function rowsWhere(string $condition): int
    {
        return (int) $this->database->connect()->query("SELECT COUNT(*) FROM users WHERE $condition")->fetchColumn();
    }
}
