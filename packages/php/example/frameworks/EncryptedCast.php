<?php

declare(strict_types=1);

use Illuminate\Contracts\Database\Eloquent\CastsAttributes;
use Quadrille\KeyRing;

/**
 * A cast for Laravel's models: `protected $casts = ['phone' => EncryptedCast::class];`.
 *
 * An envelope is bound to its row, so the model needs its key before the value is set: a UUID, not a number assigned
 * by the database.
 */
final class EncryptedCast implements CastsAttributes
{
    private static KeyRing $ring;

    /** Sets the keys. Call it once, in a service provider. */
    public static function useKeys(KeyRing $ring): void
    {
        self::$ring = $ring;
    }

    public function get($model, string $key, $value, array $attributes)
    {
        return $value === null ? null : $this->field($model, $key)->decrypt($value, row: $this->row($model, $attributes));
    }

    public function set($model, string $key, $value, array $attributes)
    {
        return $value === null ? null : $this->field($model, $key)->encrypt($value, row: $this->row($model, $attributes));
    }

    private function field($model, string $key)
    {
        return self::$ring->field($model->getTable(), $key);
    }

    private function row($model, array $attributes): string
    {
        return (string) ($attributes[$model->getKeyName()] ?? throw new LogicException('the model needs its key first'));
    }
}
