import type { Pool } from 'undici';

/**
 * Keeps a pool in its Agent while it has requests. The Agent of undici 7 closes a pool as soon as its last socket has closed,
 * though requests may wait there, and takes what that pool says later for its successor's: from one closed socket on, every
 * request would get a pool, and a connection, of its own.
 */
export function steady(pool: Pool): Pool {
    const emit = pool.emit;
    const pass = (event: string, args: unknown[]) => Reflect.apply(emit, pool, [event, ...args]) as boolean;
    // The Agent counts connections, so that what is held back must be told in the end.
    let held = 0;
    pool.emit = ((event: string, ...args: unknown[]) => {
        if (event !== 'disconnect' && event !== 'connectionError') return pass(event, args);
        if (pool.closed) return false;
        if (event === 'disconnect') held++;
        if (pool.stats.size > 0) return false;
        if (event === 'connectionError') pass(event, args);
        for (; held > 0 && !pool.closed; held--) pass('disconnect', args);
        return true;
    }) as typeof emit;
    return pool;
}
