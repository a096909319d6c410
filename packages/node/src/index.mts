// For `import`: the very same objects as `require` gives, so that one process has one set of stores and contexts.
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
