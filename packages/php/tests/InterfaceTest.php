<?php

declare(strict_types=1);

namespace Quadrille\Tests;

use PHPUnit\Framework\TestCase;

/** The implementation under test has exactly the classes, methods and parameters of the stubs. */
final class InterfaceTest extends TestCase
{
    private const CLASSES = ['KeyRing', 'Field', 'Legacy', 'FieldException', 'KeyRingException', 'DecryptionException'];

    public function testTheStubsTellTheTruth(): void
    {
        $stubs = file_get_contents(__DIR__ . '/../stubs/quadrille.php');
        eval(strstr(str_replace('namespace Quadrille;', 'namespace Quadrille\Stubs;', $stubs), 'namespace'));
        foreach (self::CLASSES as $class) {
            $stub = new \ReflectionClass("Quadrille\\Stubs\\$class");
            $real = new \ReflectionClass("Quadrille\\$class");
            self::assertSame($stub->isFinal(), $real->isFinal(), $class);
            self::assertSame($this->methods($stub), $this->methods($real), $class);
        }
    }

    public function testTheExtensionDescribesItself(): void
    {
        if (!extension_loaded('quadrille')) {
            self::markTestSkipped('this is the implementation in PHP');
        }
        self::assertSame('0.1.0', phpversion('quadrille'));
        $path = Support::file(Support::text());
        \Quadrille\KeyRing::load($path);
        ob_start();
        (new \ReflectionExtension('quadrille'))->info();
        $info = ob_get_clean();
        self::assertStringContainsString('0.1.0', $info);
        self::assertMatchesRegularExpression('/AES in use.*(AES-NI|VAES|ARMv8|software)/', $info);
        self::assertMatchesRegularExpression('/Keys loaded.*' . preg_quote($path, '/') . ': 3f9a01c2 \(active\)/', $info);
        self::assertStringNotContainsString(Support::key('a'), $info);
    }

    /** @return array<string, list<string>> */
    private function methods(\ReflectionClass $class): array
    {
        $methods = [];
        foreach ($class->getMethods(\ReflectionMethod::IS_PUBLIC) as $method) {
            if (str_starts_with($method->name, '__') || $method->class !== $class->name) {
                continue;
            }
            $described = [$method->isStatic() ? 'static' : 'instance'];
            foreach ($method->getParameters() as $parameter) {
                $default = $parameter->isOptional() ? ' = ' . json_encode($parameter->getDefaultValue()) : '';
                $sensitive = $parameter->getAttributes(\SensitiveParameter::class) ? 'sensitive ' : '';
                $described[] = "$sensitive\${$parameter->name}$default";
            }
            $type = (string) $method->getReturnType();
            $described[] = str_replace(['Quadrille\\Stubs\\', 'Quadrille\\', 'self'], ['', '', $class->getShortName()], $type);
            $methods[$method->name] = $described;
        }
        ksort($methods);
        return $methods;
    }
}
