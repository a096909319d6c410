<?php

declare(strict_types=1);

namespace Quadrille\Tests\Readme;

use PHPUnit\Framework\TestCase;

/** Runs the snippets of the README in order: PHP's in one scope, and the commands of `quadrille`. */
final class ReadmeTest extends TestCase
{
    private const KEYS = '/etc/quadrille/fields.keys';

    public function testTheSnippetsRun(): void
    {
        $binary = getenv('QUADRILLE_BINARY') ?: self::fail('QUADRILLE_BINARY names no program');
        $readme = file_get_contents(dirname(__DIR__, 2) . '/README.md');
        preg_match_all('/^```(php|sh)\n(.*?)^```$/ms', $readme, $snippets, PREG_SET_ORDER);
        $keys = sys_get_temp_dir() . '/quadrille-readme-' . bin2hex(random_bytes(4));
        $script = "<?php\nrequire " . var_export(dirname(__DIR__, 2) . '/src/autoload.php', true) . ";\n";
        $uses = '';
        $ran = ['php' => 0, 'sh' => 0];
        foreach ($snippets as [, $language, $text]) {
            $text = str_replace(self::KEYS, $keys, $text);
            if ($language === 'php') {
                preg_match_all('/^use .*;$/m', $text, $found);
                $uses .= implode("\n", $found[0]) . "\n";
                $script .= preg_replace('/^use .*;$/m', '', $text) . "\nclearstatcache();\n";
                $ran['php']++;
                continue;
            }
            foreach (preg_grep('/^quadrille /', explode("\n", $text)) as $command) {
                $command = preg_replace('/^quadrille /', escapeshellarg($binary) . ' ', $command);
                $script .= 'passthru(' . var_export("$command 2>&1", true) . ", \$status); assert(\$status === 0);\n";
                $ran['sh']++;
            }
        }
        self::assertGreaterThanOrEqual(6, $ran['php']);
        self::assertGreaterThanOrEqual(3, $ran['sh']);

        $file = "$keys.php";
        file_put_contents($file, str_replace("<?php\n", "<?php\n$uses", $script . "echo 'the end';\n"));
        $extension = extension_loaded('quadrille') ? ['-dextension=' . getenv('QUADRILLE_EXTENSION')] : [];
        $command = [PHP_BINARY, ...$extension, '-dzend.assertions=1', '-dassert.exception=1', $file];
        $process = proc_open($command, [1 => ['pipe', 'w'], 2 => ['redirect', 1]], $pipes);
        $output = stream_get_contents($pipes[1]);
        proc_close($process);
        array_map(unlink(...), array_filter([$file, $keys], is_file(...)));
        self::assertStringEndsWith('the end', $output);
    }
}
