<?php

declare(strict_types=1);

namespace Quadrille\Tests\Application;

use PHPUnit\Framework\TestCase;

require_once __DIR__ . '/Process.php';
require_once __DIR__ . '/Servers.php';

/**
 * CPU profile of a PHP process that calls an HTTPS server with curl, by `quadrille profile system --pid`: with a
 * handle for each call, with sessions shared by the handles, and with one handle.
 */
final class OutboundTest extends TestCase
{
    /** Length of the server's response, long enough for records to appear in the profile. */
    private const ANSWER = 100_000;

    private string $folder;
    /** @var list<Process> */
    private array $processes = [];
    private int $port;
    private int $admin;

    protected function setUp(): void
    {
        $this->folder = sys_get_temp_dir() . '/quadrille-outbound-' . bin2hex(random_bytes(4));
        mkdir($this->folder, 0700);
        if (!extension_loaded('curl')) {
            $this->skip('php8.2-curl is not installed: no PHP client is sampled');
        }
        $probe = $this->start('perf', 'record', '--quiet', '--event', 'cpu-clock', '--output', '/dev/null', '--', 'true');
        if ($probe->wait() !== 0) {
            $this->skip('perf cannot be used here, so no PHP client is sampled: ' . strtok($probe->said(), "\n"));
        }
        $this->serve();
    }

    protected function tearDown(): void
    {
        foreach ($this->processes as $process) {
            $process->kill();
        }
        array_map(unlink(...), glob("$this->folder/*"));
        rmdir($this->folder);
    }

    public function testHandshakesAreSeenByTheirStepsAndGoAway(): void
    {
        $full = $this->sampled('full');
        $resumed = $this->sampled('resumed');
        $kept = $this->sampled('kept');
        $all = json_encode(compact('full', 'resumed', 'kept'), JSON_PRETTY_PRINT);

        // Verification is so cheap that a few hundred samples may miss it.
        foreach (['key-exchange', 'signature', 'context'] as $step) {
            self::assertGreaterThan(0, $full[$step], "$step: $all");
        }
        self::assertGreaterThan(0, $full['certificate-verification'] + $full['messages'], $all);
        foreach (['key-exchange', 'signature', 'certificate-verification'] as $step) {
            self::assertLessThanOrEqual($full[$step] / 4, $resumed[$step], "$step: $all");
        }
        // curl creates a context for each connection and reads the trusted certificates into it, resumed or not.
        self::assertGreaterThan($full['context'], $resumed['context'], $all);
        // One connection: only records remain of TLS.
        self::assertGreaterThan(0.1, $kept['records'], $all);
        self::assertGreaterThan(2 * $full['records'], $kept['records'], $all);
        self::assertLessThan(0.01, $kept['key-exchange'] + $kept['signature'] + $kept['context'], $all);
    }

    /** Returns the shares of each step of TLS in the CPU of a client. @return array<string, float> */
    private function sampled(string $kind): array
    {
        $before = $this->handshakes();
        $client = $this->start(PHP_BINARY, __DIR__ . '/calls.php', $kind, "https://localhost:$this->port/", "$this->folder/cert.pem");
        $this->until(static fn () => strlen($client->said()) >= 100, $client);
        $sampling = $this->start(getenv('QUADRILLE_BINARY'), 'profile', 'system', '--pid', (string) $client->pid(),
            '--seconds', '3', '--frequency', '499', '--json');
        self::assertSame(0, $sampling->wait(), $sampling->said());
        $client->kill();

        // Checks the kind of connections, as reported by curl and the server.
        $connections = $client->said();
        self::assertSame('1', $connections[0]);
        self::assertSame($kind === 'kept' ? '0' : '1', count_chars(substr($connections, 1), 3));
        $handshakes = array_map(static fn ($after, $before) => $after - $before, $this->handshakes(), $before);
        $handshakes = array_combine(['full', 'resumed'], $handshakes);
        self::assertSame($kind === 'full', $handshakes['full'] > 1, json_encode($handshakes));
        self::assertSame($kind === 'resumed', $handshakes['resumed'] > 1, json_encode($handshakes));

        $report = json_decode($sampling->said(), true, flags: JSON_THROW_ON_ERROR);
        self::assertGreaterThan(100, $report['samples'], $sampling->said());
        return $report['steps'];
    }

    /** Starts a gateway with an RSA certificate, the most common type. */
    private function serve(): void
    {
        $key = openssl_pkey_new(['private_key_type' => OPENSSL_KEYTYPE_RSA, 'private_key_bits' => 2048]);
        $request = openssl_csr_new(['commonName' => 'localhost'], $key, ['digest_alg' => 'sha256']);
        openssl_x509_export_to_file(openssl_csr_sign($request, null, $key, 2, ['digest_alg' => 'sha256']), "$this->folder/cert.pem");
        openssl_pkey_export_to_file($key, "$this->folder/key.pem");
        chmod("$this->folder/key.pem", 0600);
        [$this->port, $this->admin] = [Servers::freePort(), Servers::freePort()];
        $gateway = $this->start(getenv('QUADRILLE_BINARY'), 'serve', '--listen', "127.0.0.1:$this->port",
            '--cert', "$this->folder/cert.pem", '--key', "$this->folder/key.pem", '--admin', "127.0.0.1:$this->admin",
            '--respond', str_repeat('x', self::ANSWER), '--log-level', 'error');
        $this->until(fn () => @fsockopen('127.0.0.1', $this->port) !== false, $gateway);
    }

    /** Returns the number of full and resumed handshakes so far. @return array{int, int} */
    private function handshakes(): array
    {
        $metrics = file_get_contents("http://127.0.0.1:$this->admin/metrics");
        return array_map(static function (string $kind) use ($metrics): int {
            preg_match_all("/^quadrille_handshakes_total\\{[^}]*\"$kind\"[^}]*\\} (\\d+)$/m", $metrics, $counts);
            return (int) array_sum($counts[1]);
        }, ['full', 'resumed']);
    }

    /** Starts a program that ends with this one. */
    private function start(string ...$command): Process
    {
        $log = "$this->folder/" . count($this->processes) . '.log';
        return $this->processes[] = new Process(['setpriv', '--pdeathsig=KILL', '--', ...$command], $log);
    }

    private function until(callable $isReady, Process $process): void
    {
        for ($i = 0; $i < 1500 && !$isReady(); $i++) {
            $process->isRunning() || self::fail($process->said());
            usleep(20_000);
        }
        self::assertTrue($isReady(), $process->said());
    }

    /** Written to stderr, past PHPUnit's output. */
    private function skip(string $why): never
    {
        fwrite(STDERR, "SKIPPED: $why\n");
        self::markTestSkipped($why);
    }
}
