<?php

declare(strict_types=1);

namespace Quadrille;

/** Whatever goes wrong with encrypted fields. */
class FieldException extends \RuntimeException
{
}
