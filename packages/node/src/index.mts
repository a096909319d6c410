// For `import`: the same objects as from `require`, so that one process has one set of stores and contexts.
export {
    bindsSessionsToNames,
    FileSessionStore,
    MemorySessionStore,
    policyOptions,
    QuadrilleError,
    registerPrometheus,
    TlsAgent,
} from './index.js';
export type * from './index.js';
