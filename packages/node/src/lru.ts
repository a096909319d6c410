/** A map that forgets what was not used for longest once it holds more than `limit`. */
export class LruMap<K, V> {
    readonly #entries = new Map<K, V>();
    /** The key used last, so that using it again need not move it. */
    #newest: K | undefined;

    constructor(
        readonly limit: number,
        readonly onEvict?: (key: K, value: V) => void,
    ) {}

    get size(): number {
        return this.#entries.size;
    }

    /** The value, which now counts as the last one used. */
    get(key: K): V | undefined {
        const value = this.#entries.get(key);
        if (value === undefined || key === this.#newest) return value;
        this.#entries.delete(key);
        this.#entries.set(key, value);
        this.#newest = key;
        return value;
    }

    set(key: K, value: V): void {
        this.#entries.delete(key);
        this.#entries.set(key, value);
        this.#newest = key;
        if (this.#entries.size <= this.limit) return;
        const [oldest] = this.#entries;
        if (oldest === undefined) return;
        this.#entries.delete(oldest[0]);
        this.onEvict?.(oldest[0], oldest[1]);
    }

    delete(key: K): boolean {
        return this.#entries.delete(key);
    }

    clear(): void {
        this.#entries.clear();
    }

    /** From the least to the most recently used; nothing counts as used by it. */
    entries(): IterableIterator<[K, V]> {
        return this.#entries.entries();
    }
}
