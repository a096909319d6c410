import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { State } from './child.js';

/** A process of the bench. */
export class Child {
    readonly #process: ChildProcess;
    readonly #pending = new Map<number, { resolve(result: never): void; reject(error: Error): void }>();
    #last = 0;

    constructor(role: 'server' | 'plain' | 'client' | 'proxy', execPath: string = process.execPath) {
        this.#process = fork(join(__dirname, 'child.js'), [role], { execPath });
        this.#process.on('message', ({ id, result, error }: { id: number; result: never; error?: string }) => {
            const pending = this.#pending.get(id);
            this.#pending.delete(id);
            if (error === undefined) pending?.resolve(result);
            else pending?.reject(new Error(error));
        });
        this.#process.on('exit', (code) => {
            for (const { reject } of this.#pending.values()) reject(new Error(`the ${role} ended with status ${code}`));
        });
    }

    ask<Result>(command: string, argument?: object): Promise<Result> {
        const id = ++this.#last;
        this.#process.send({ id, command, argument });
        return new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject }));
    }

    state(): Promise<State> {
        return this.ask('state');
    }

    async stop(): Promise<void> {
        if (this.#process.exitCode !== null) return;
        this.#process.disconnect();
        await once(this.#process, 'exit');
    }
}

/** Runs `work`, and returns the CPU time and counters of each process for it. */
export async function during(children: Child[], work: () => Promise<unknown>): Promise<State[]> {
    const before = await Promise.all(children.map((child) => child.state()));
    await work();
    const after = await Promise.all(children.map((child) => child.state()));
    return after.map((state, i) => {
        const earlier = before[i] as State;
        return {
            cpu: state.cpu - earlier.cpu,
            full: state.full - earlier.full,
            resumed: state.resumed - earlier.resumed,
        };
    });
}
