<?php

declare(strict_types=1);

namespace Quadrille\Tests\Application;

use PDO;

/** Address of a database, for PDO and for `quadrille`. */
final class Database
{
    public function __construct(
        public readonly string $dsn,
        public readonly string $user,
        public readonly string $url,
    ) {
    }

    public function connect(): PDO
    {
        return new PDO($this->dsn, $this->user);
    }

    public function waitFor(): PDO
    {
        for ($i = 0;; $i++) {
            try {
                return $this->connect();
            } catch (\PDOException $e) {
                $i < 300 or throw $e;
                usleep(100_000);
            }
        }
    }

    /** Executes the application's schema. */
    public function execute(string $schema): void
    {
        $this->connect()->exec(file_get_contents(dirname(__DIR__, 2) . "/example/schema/$schema.sql"));
    }
}
