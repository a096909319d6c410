import type { Metrics } from './metrics.js';

/** The part of prom-client that is used; this package does not depend on it. */
export interface PromClient {
    Counter: MetricClass;
    Gauge: MetricClass;
}

type MetricClass = new (configuration: {
    name: string;
    help: string;
    labelNames: string[];
    registers?: any[];
    collect(this: Metric): void;
}) => unknown;

/** A Counter or a Gauge: both have these. */
interface Metric {
    reset(): void;
    inc(labels: Record<string, string>, value: number): void;
}

export interface PrometheusOptions {
    /** Value of the label `agent`, for processes with several. Default 'default'. */
    name?: string;
    /** Whether to export counters by origin too. Off by default: each origin is a time series. */
    perOrigin?: boolean;
    /** prom-client's registry, if not the global one. */
    registry?: unknown;
}

/**
 * Registers the counters of agents and dispatchers with prom-client; they are read when it is scraped.
 *
 * ```
 * quadrille_tls_handshakes_total{agent,origin,outcome}    resumed, ticketMiss, declined, bypassed; and failed
 * quadrille_tls_reused_sockets_total{agent,origin}
 * quadrille_tls_retries_total{agent,origin,reason}        stale, full
 * quadrille_tls_handshake_seconds{agent,origin,quantile}
 * ```
 */
export function registerPrometheus(
    client: PromClient,
    source: { metrics(): Metrics },
    { name = 'default', perOrigin = false, registry }: PrometheusOptions = {},
): void {
    const register = (
        Class: MetricClass,
        metric: string,
        help: string,
        labels: string[],
        samples: (metrics: Metrics, origin: string) => Sample[],
    ) => {
        new Class({
            name: `quadrille_tls_${metric}`,
            help,
            labelNames: ['agent', 'origin', ...labels],
            ...(registry ? { registers: [registry] } : {}),
            collect() {
                this.reset();
                const all = source.metrics();
                const views = perOrigin ? Object.entries(all.origins) : ([['', all]] as const);
                for (const [origin, counts] of views) {
                    for (const [values, value] of samples({ ...counts, origins: {} }, origin)) {
                        this.inc({ agent: name, origin, ...values }, value);
                    }
                }
            },
        });
    };
    register(client.Counter, 'handshakes_total', 'TLS handshakes by outcome', ['outcome'], (counts) =>
        (['resumed', 'ticketMiss', 'declined', 'bypassed', 'failed'] as const).map((outcome) => [
            { outcome },
            counts[outcome],
        ]),
    );
    register(client.Counter, 'reused_sockets_total', 'Requests that found an open socket', [], (counts) => [
        [{}, counts.reusedSockets],
    ]);
    register(client.Counter, 'retries_total', 'Requests sent again, handshakes repeated', ['reason'], (counts) => [
        [{ reason: 'stale' }, counts.staleRetries],
        [{ reason: 'full' }, counts.fullRetries],
    ]);
    register(
        client.Gauge,
        'handshake_seconds',
        'Percentiles of TLS handshake durations',
        ['quantile'],
        ({ handshakeMs }) => [
            [{ quantile: '0.5' }, handshakeMs.p50 / 1000],
            [{ quantile: '0.9' }, handshakeMs.p90 / 1000],
            [{ quantile: '0.99' }, handshakeMs.p99 / 1000],
        ],
    );
}

type Sample = [labels: Record<string, string>, value: number];
