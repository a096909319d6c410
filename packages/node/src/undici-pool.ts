import type { Pool } from 'undici';

/**
 * Keeps a pool in its Agent while it has requests. The Agent of undici 7 closes a pool as soon as its last socket has
 * closed, even if requests wait there, and attributes later events of that pool to its successor: after one closed
 * socket, every request would get a new pool, and a new connection.
 */
export function steady(pool: Pool): Pool {
    const emit = pool.emit;
    const pass = (event: string, args: unknown[]) => Reflect.apply(emit, pool, [event, ...args]) as boolean;
    // The Agent counts connections, so withheld events must be emitted in the end.
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
