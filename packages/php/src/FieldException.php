<?php

declare(strict_types=1);

namespace Quadrille;

/** Base class of all errors of encrypted fields. */
class FieldException extends \RuntimeException
{
}
