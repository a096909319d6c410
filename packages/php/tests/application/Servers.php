<?php

declare(strict_types=1);

namespace Quadrille\Tests\Application;

/**
 * Debian's MariaDB, PostgreSQL, nginx and php-fpm, with separate folders, sockets and ports, as unprivileged users.
 * They end with this object.
 */
final class Servers
{
    public readonly string $folder;
    /** @var array<string, resource> */
    private array $processes = [];
    private const EXTENSIONS = ['pdo', 'mysqlnd', 'pdo_mysql', 'pdo_pgsql'];

    public function __construct()
    {
        $this->folder = sys_get_temp_dir() . '/quadrille-' . bin2hex(random_bytes(4));
        mkdir($this->folder);
        chmod($this->folder, 0755);
        register_shutdown_function($this->stop(...));
        // Copies, because the servers' users may not read home directories.
        $package = dirname(__DIR__, 2);
        foreach (['src', 'example', 'tests/application/pages', 'bench/pages'] as $part) {
            is_dir(dirname("$this->folder/site/$part")) || mkdir(dirname("$this->folder/site/$part"), 0755, true);
            $this->copy("$package/$part", "$this->folder/site/$part");
        }
        foreach (['QUADRILLE_BINARY' => 'quadrille', 'QUADRILLE_EXTENSION' => 'quadrille.so'] as $variable => $name) {
            if (getenv($variable)) {
                $this->copy(getenv($variable), "$this->folder/$name");
            }
        }
    }

    /** Returns the extension, readable by the servers. */
    public function extension(): string
    {
        return "$this->folder/quadrille.so";
    }

    /** Starts PostgreSQL: a database `app` for the user `app`. */
    public function postgresql(): Database
    {
        $bin = glob('/usr/lib/postgresql/*/bin')[0] ?? throw new \RuntimeException('PostgreSQL is not installed');
        $data = $this->makeFolder('postgresql', 'postgres');
        // Other users may not read the data folder.
        $socket = $this->makeFolder('postgresql-socket', 'postgres');
        $this->run(['postgres', "$bin/initdb", '-D', $data, '-A', 'trust', '-U', 'app', '-E', 'UTF8', '--locale=C', '-N']);
        $this->start('postgresql', ['postgres', "$bin/postgres", '-D', $data, '-k', $socket, '-c', 'listen_addresses=',
            '-c', 'fsync=off', '-c', 'unix_socket_permissions=0777', '-c', 'logging_collector=off']);
        $database = new Database("pgsql:host=$socket;dbname=postgres", 'app', "postgresql:///postgres?host=$socket&user=app");
        $database->waitFor();
        $database->execute('postgresql');
        return $database;
    }

    /** Starts MariaDB: a database `app` for its root. */
    public function mariadb(): Database
    {
        $data = $this->makeFolder('mariadb', 'mysql');
        $this->run(['mysql', 'mariadb-install-db', '--no-defaults', "--datadir=$data", '--skip-test-db',
            '--auth-root-authentication-method=normal', '--skip-name-resolve']);
        $socket = "$data/socket";
        $this->start('mariadb', ['mysql', '/usr/sbin/mariadbd', '--no-defaults', "--datadir=$data", "--socket=$socket",
            "--pid-file=$data/pid", '--skip-networking', '--innodb-flush-log-at-trx-commit=0',
            '--innodb-buffer-pool-size=64M', '--character-set-server=utf8mb4']);
        (new Database("mysql:unix_socket=$socket", 'root', ''))->waitFor()->exec('CREATE DATABASE app');
        $dsn = "mysql:unix_socket=$socket;dbname=app;charset=utf8mb4";
        $database = new Database($dsn, 'root', "mysql://root@localhost/app?socket=$socket");
        $database->execute('mariadb');
        return $database;
    }

    /**
     * Starts nginx and php-fpm for the pages of a folder of this package, with or without the extension; returns
     * nginx's port.
     *
     * @param list<string> $settings lines for php.ini
     */
    public function web(
        string $pages,
        Database $database,
        bool $hasExtension,
        array $settings = [],
        int $workers = 2,
    ): int
    {
        $name = 'web' . bin2hex(random_bytes(2));
        $folder = $this->makeFolder($name, 'www-data');
        foreach (['fields.keys', 'old.keys'] as $keys) {
            @symlink("$this->folder/keys/$keys", "$folder/$keys");
        }
        $port = self::freePort();
        $extensions = array_map(static fn (string $name) => "extension=$name", self::EXTENSIONS);
        $ini = [...$extensions, 'zend_extension=opcache', 'opcache.enable=1', ...$settings];
        if ($hasExtension) {
            $ini[] = 'extension=' . $this->extension();
        }
        file_put_contents("$folder/php.ini", implode("\n", $ini));
        $words = ['@FOLDER@' => $folder, '@PORT@' => (string) $port, '@ROOT@' => $this->site($pages),
            '@WORKERS@' => (string) $workers, '@DSN@' => '"' . $database->dsn . '"', '@DBUSER@' => $database->user];
        foreach (['nginx.conf', 'php-fpm.conf'] as $file) {
            $template = file_get_contents(dirname(__DIR__, 2) . "/example/etc/$file");
            file_put_contents("$folder/$file", strtr($template, $words));
        }
        $this->start("$name-php-fpm", ['www-data', '/usr/sbin/php-fpm8.2', '-F', '-c', "$folder/php.ini", '-y',
            "$folder/php-fpm.conf"], ['PHP_INI_SCAN_DIR' => "$folder/no-more"]);
        $this->start("$name-nginx", ['www-data', '/usr/sbin/nginx', '-e', "$folder/nginx.log", '-c', "$folder/nginx.conf"]);
        $this->until(static fn () => @fsockopen('127.0.0.1', $port) !== false, 'nginx');
        $this->until(static fn () => file_exists("$folder/php-fpm.sock"), 'php-fpm');
        return $port;
    }

    /** Returns a folder for key files that only the web server's user can read. */
    public function keys(): string
    {
        return $this->makeFolder('keys', 'www-data');
    }

    /** Runs `quadrille` as the web server's user; returns its exit status and output. */
    public function quadrille(string ...$arguments): array
    {
        $process = $this->quadrilleInBackground(...$arguments);
        return [$process->wait(), $process->said()];
    }

    public function quadrilleInBackground(string ...$arguments): Process
    {
        $command = ['www-data', "$this->folder/quadrille", ...$arguments];
        return new Process($this->as($command), "$this->folder/quadrille.log");
    }

    public function stop(): void
    {
        foreach (array_reverse($this->processes) as $name => $process) {
            // PostgreSQL's fast shutdown. Not for the others: programs started in a shell's background ignore SIGINT.
            proc_terminate($process, $name === 'postgresql' ? SIGINT : SIGTERM);
        }
        $patience = microtime(true) + 20;
        foreach ($this->processes as $process) {
            while (proc_get_status($process)['running'] && microtime(true) < $patience) {
                usleep(10_000);
            }
            proc_terminate($process, SIGKILL);
            proc_close($process);
        }
        $this->processes = [];
        if (is_dir($this->folder)) {
            exec('rm -rf ' . escapeshellarg($this->folder));
        }
    }

    /** Returns a path of this package, readable by the servers. */
    public function site(string $path): string
    {
        return "$this->folder/site/$path";
    }

    /** Returns the microseconds of CPU used so far by all php-fpm workers and nginx. */
    public function cpu(): float
    {
        $ticks = 0;
        $children = static fn (int $pid) => preg_split('/ /', trim((string) @file_get_contents("/proc/$pid/task/$pid/children")), -1, PREG_SPLIT_NO_EMPTY);
        foreach ($this->processes as $name => $process) {
            if (str_starts_with($name, 'web')) {
                foreach ($children(proc_get_status($process)['pid']) as $child) {
                    $fields = explode(' ', substr(strrchr((string) file_get_contents("/proc/$child/stat"), ')'), 2));
                    $ticks += (int) $fields[11] + (int) $fields[12];
                }
            }
        }
        return $ticks * 1e6 / 100;
    }

    public static function freePort(): int
    {
        $socket = stream_socket_server('tcp://127.0.0.1:0');
        return (int) substr(strrchr(stream_socket_get_name($socket, false), ':'), 1);
    }

    private function copy(string $from, string $to): void
    {
        exec('cp -r ' . escapeshellarg($from) . ' ' . escapeshellarg($to) . ' && chmod -R a+rX ' . escapeshellarg($to));
    }

    private function makeFolder(string $name, string $user): string
    {
        $folder = "$this->folder/$name";
        mkdir($folder);
        chmod($folder, 0755);
        if (posix_geteuid() === 0) {
            chown($folder, $user);
            chgrp($folder, $user);
        }
        return $folder;
    }

    /**
     * Runs as another user, if this is root; ended when this process ends for any reason.
     *
     * @param list<string> $command the user first
     */
    private function as(array $command): array
    {
        $user = array_shift($command);
        $identity = posix_geteuid() === 0 ? ["--reuid=$user", "--regid=$user", '--clear-groups'] : [];
        return ['setpriv', '--pdeathsig=TERM', ...$identity, '--', ...$command];
    }

    /** @param list<string> $command */
    private function run(array $command): void
    {
        $process = new Process($this->as($command), "$this->folder/setup.log");
        if ($process->wait() !== 0) {
            throw new \RuntimeException(implode(' ', $command) . ":\n" . $process->said());
        }
    }

    /** @param list<string> $command */
    private function start(string $name, array $command, array $environment = []): void
    {
        $log = ['file', "$this->folder/$name.log", 'a'];
        $process = proc_open($this->as($command), [0 => ['file', '/dev/null', 'r'], $log, $log], $pipes, $this->folder,
            $environment + getenv());
        $this->processes[$name] = $process ?: throw new \RuntimeException("$name cannot be started");
    }

    private function until(callable $isReady, string $what): void
    {
        for ($i = 0; $i < 300; $i++) {
            if ($isReady()) {
                return;
            }
            usleep(100_000);
        }
        throw new \RuntimeException("$what did not start: " . implode("\n", array_map(
            static fn (string $log) => basename($log) . ': ' . file_get_contents($log),
            glob("$this->folder/*.log"),
        )));
    }
}
