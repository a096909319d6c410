<?php

declare(strict_types=1);

namespace Quadrille;

/** A field cannot be decrypted; it never says why. */
class DecryptionException extends FieldException
{
}
