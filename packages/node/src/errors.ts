/** Error codes of this package, for `switch (error.code)`. */
export type ErrorCode =
    | 'ERR_QUADRILLE_OPTION'
    | 'ERR_QUADRILLE_UNSAFE_NODE'
    | 'ERR_QUADRILLE_UNSAFE_PATH'
    | 'ERR_QUADRILLE_KEY'
    | 'ERR_QUADRILLE_PEER_MISSING';

/** An error of the caller or of the installation; its message ends with the remedy. */
export class QuadrilleError extends Error {
    override readonly name = 'QuadrilleError';

    constructor(
        readonly code: ErrorCode,
        message: string,
        options?: ErrorOptions,
    ) {
        super(message, options);
    }
}

/** Requires `value` to be a whole number of at least `least`, or Infinity. */
export function countOption(name: string, value: number | undefined, fallback: number, least = 1): number {
    if (value === undefined) return fallback;
    if (value === Infinity || (Number.isSafeInteger(value) && value >= least)) return value;
    throw new QuadrilleError(
        'ERR_QUADRILLE_OPTION',
        `${name} is ${String(value)}: give a whole number of at least ${least}, or Infinity`,
    );
}

/** Requires `value` to be one of `allowed`. */
export function choiceOption<T extends string>(
    name: string,
    value: T | undefined,
    allowed: readonly T[],
    fallback: T,
): T {
    if (value === undefined) return fallback;
    if (allowed.includes(value)) return value;
    const choices = allowed.map((choice) => `'${choice}'`).join(', ');
    throw new QuadrilleError('ERR_QUADRILLE_OPTION', `${name} is '${String(value)}': give one of ${choices}`);
}
