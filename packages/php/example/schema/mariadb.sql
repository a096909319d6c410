CREATE TABLE users (
    id uuid PRIMARY KEY,
    -- The older form, until it is migrated.
    name text,
    phone text,
    email text,
    address text,
    -- Envelopes: as long as the value and 77 bytes more.
    name_enc varbinary(333),
    phone_enc varbinary(141),
    email_enc varbinary(333),
    address_enc varbinary(1101),
    -- 64 bits in hexadecimal.
    phone_index char(16) CHARACTER SET ascii,
    INDEX users_by_phone (phone_index)
) ENGINE = InnoDB;
