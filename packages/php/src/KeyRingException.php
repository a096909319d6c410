<?php

declare(strict_types=1);

namespace Quadrille;

/** A key ring cannot be read. */
class KeyRingException extends FieldException
{
}
