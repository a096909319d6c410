<?php

declare(strict_types=1);

use Doctrine\DBAL\ParameterType;
use Doctrine\DBAL\Platforms\AbstractPlatform;
use Doctrine\DBAL\Types\Type;
use Quadrille\Field;

/**
 * A type for Doctrine: `Type::getTypeRegistry()->register('users_phone', EncryptedType::of($ring->field('users', 'phone')));`.
 *
 * Doctrine converts a value without its row, so all envelopes of a column are bound to one row name: a client with
 * write access to the table can exchange values between rows undetected, which the cast for Laravel's models
 * prevents.
 */
final class EncryptedType extends Type
{
    private const ROW = 'any row';

    private Field $field;

    public static function of(Field $field): self
    {
        $type = new self();
        $type->field = $field;
        return $type;
    }

    public function getName(): string
    {
        return 'quadrille_encrypted';
    }

    public function getSQLDeclaration(array $column, AbstractPlatform $platform): string
    {
        return $platform->getBlobTypeDeclarationSQL($column);
    }

    public function getBindingType(): int
    {
        return ParameterType::LARGE_OBJECT;
    }

    public function convertToDatabaseValue($value, AbstractPlatform $platform): mixed
    {
        return $value === null ? null : $this->field->encrypt($value, row: self::ROW);
    }

    public function convertToPHPValue($value, AbstractPlatform $platform): mixed
    {
        // PostgreSQL returns bytes as a stream.
        $value = is_resource($value) ? stream_get_contents($value) : $value;
        return $value === null ? null : $this->field->decrypt($value, row: self::ROW);
    }
}
