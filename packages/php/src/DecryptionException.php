<?php

declare(strict_types=1);

namespace Quadrille;

/** A field cannot be decrypted. The reason is never given. */
class DecryptionException extends FieldException
{
}
