/** A map that evicts the least recently used entry when it holds more than `limit`. */
export class LruMap<K, V> {
    readonly #entries = new Map<K, V>();
    /** The key used last, so that using it again does not move it. */
    #newest: K | undefined;

    constructor(
        readonly limit: number,
        readonly onEvict?: (key: K, value: V) => void,
    ) {}

    get size(): number {
        return this.#entries.size;
    }

    /** Returns the value and marks it as the most recently used. */
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

    /** Iterates from the least to the most recently used, without marking entries as used. */
    entries(): IterableIterator<[K, V]> {
        return this.#entries.entries();
    }
}
