CREATE TABLE users (
    id uuid PRIMARY KEY,
    -- The older form, until it is migrated.
    name text,
    phone text,
    email text,
    address text,
    -- Envelopes: as long as the value and 77 bytes more.
    name_enc bytea,
    phone_enc bytea,
    email_enc bytea,
    address_enc bytea,
    -- 64 bits in hexadecimal.
    phone_index char(16)
);
CREATE INDEX users_by_phone ON users (phone_index);
