<?php

declare(strict_types=1);

namespace Quadrille\Tests\Application;

/** A program running in the background. */
final class Process
{
    /** @var resource */
    private $process;
    private ?int $status = null;

    /** @param list<string> $command */
    public function __construct(array $command, private readonly string $log)
    {
        // Appended, so that the two streams do not overwrite each other.
        file_put_contents($log, '');
        $output = ['file', $log, 'a'];
        $this->process = proc_open($command, [0 => ['file', '/dev/null', 'r'], $output, $output], $pipes);
    }

    public function pid(): int
    {
        return proc_get_status($this->process)['pid'];
    }

    public function isRunning(): bool
    {
        $status = proc_get_status($this->process);
        if (!$status['running'] && $this->status === null) {
            $this->status = $status['signaled'] ? 128 + $status['termsig'] : $status['exitcode'];
        }
        return $status['running'];
    }

    public function kill(): void
    {
        proc_terminate($this->process, SIGKILL);
        $this->wait();
    }

    /** Returns the exit status, or 128 plus the signal's number. */
    public function wait(): int
    {
        while ($this->isRunning()) {
            usleep(2_000);
        }
        return $this->status;
    }

    public function said(): string
    {
        return (string) file_get_contents($this->log);
    }
}
