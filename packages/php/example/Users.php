<?php

declare(strict_types=1);

use Quadrille\Field;
use Quadrille\KeyRing;
use Quadrille\Legacy;

/**
 * A table of users whose personal data is encrypted.
 *
 * Each value is in a column `..._enc`. The columns without this suffix hold the older form, until `quadrille field
 * migrate --clear` has moved a row; both kinds of rows are read, so the site keeps serving during the migration.
 */
final class Users
{
    public const COLUMNS = ['name', 'phone', 'email', 'address'];

    /** @var array<string, Field> */
    private array $fields = [];

    public function __construct(
        private readonly PDO $database,
        private readonly KeyRing $ring,
        private readonly ?Legacy $legacy = null,
    ) {
        foreach (self::COLUMNS as $column) {
            // The keys are bound to the names of the table and of the column with the envelopes.
            $this->fields[$column] = $ring->field('users', "{$column}_enc");
        }
    }

    /** Connects according to the environment, and loads the keys. */
    public static function fromEnvironment(): self
    {
        $database = new PDO(getenv('APP_DSN'), getenv('APP_USER') ?: null, getenv('APP_PASSWORD') ?: null);
        $ring = KeyRing::load(getenv('APP_KEYS'));
        $legacy = null;
        if (getenv('APP_LEGACY_KEYS')) {
            [$data, $vector] = file(getenv('APP_LEGACY_KEYS'), FILE_IGNORE_NEW_LINES);
            $legacy = $ring->legacy(base64_decode($data), base64_decode($vector));
        }
        return new self($database, $ring, $legacy);
    }

    /**
     * Returns all users, ordered by id.
     *
     * @return list<array<string, ?string>>
     */
    public function all(): array
    {
        return $this->read($this->database->query('SELECT * FROM users ORDER BY id')->fetchAll(PDO::FETCH_ASSOC));
    }

    /**
     * Returns the users with a phone number: found by its blind index, without rows that only share the index.
     *
     * @return list<array<string, ?string>>
     */
    public function byPhone(string $phone): array
    {
        $statement = $this->database->prepare('SELECT * FROM users WHERE phone_index = ? ORDER BY id');
        $statement->execute([$this->fields['phone']->blindIndex($phone)]);
        $users = $this->read($statement->fetchAll(PDO::FETCH_ASSOC));
        return array_values(array_filter($users, static fn (array $user) => $user['phone'] === $phone));
    }

    /**
     * Adds a user, and returns the id, which is drawn before the row is written, because envelopes are bound to it.
     *
     * @param array<string, string> $user by column
     */
    public function add(array $user): string
    {
        $id = self::uuid();
        $statement = $this->database->prepare(
            'INSERT INTO users (id, name_enc, phone_enc, email_enc, address_enc, phone_index) VALUES (?, ?, ?, ?, ?, ?)',
        );
        $statement->bindValue(1, $id);
        foreach (self::COLUMNS as $i => $column) {
            // As a large object: PostgreSQL treats a string as text, and an envelope is binary.
            $statement->bindValue($i + 2, $this->fields[$column]->encrypt($user[$column], row: $id), PDO::PARAM_LOB);
        }
        $statement->bindValue(6, $this->fields['phone']->blindIndex($user['phone']));
        $statement->execute();
        return $id;
    }

    /**
     * @param list<array<string, mixed>> $rows
     * @return list<array<string, ?string>>
     */
    private function read(array $rows): array
    {
        $ids = array_column($rows, 'id');
        $values = [];
        foreach ($this->fields as $column => $field) {
            $values[$column] = $field->decryptMany(array_column($rows, "{$column}_enc"), rows: $ids);
        }
        $users = [];
        foreach ($rows as $i => $row) {
            $users[$i]['id'] = $row['id'];
            foreach (self::COLUMNS as $column) {
                $users[$i][$column] = $values[$column][$i] ?? $this->older($row[$column]);
            }
        }
        return $users;
    }

    private function older(?string $value): ?string
    {
        return $value === null ? null : $this->legacy?->decrypt($value);
    }

    /** Returns a random UUID (RFC 9562, version 4). */
    public static function uuid(): string
    {
        $bytes = random_bytes(16);
        $bytes[6] = chr(ord($bytes[6]) & 0x0f | 0x40);
        $bytes[8] = chr(ord($bytes[8]) & 0x3f | 0x80);
        return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex($bytes), 4));
    }
}
