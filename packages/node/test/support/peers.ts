import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Certificate, temporaryFolder } from './certificates.js';
import { serve } from './server.js';

/** A third-party server. */
export interface Peer {
    readonly port: number;
    stop(): Promise<void>;
}

export interface PeerKind {
    readonly name: string;
    /** Its version, or undefined if it is not installed. */
    version(): string | undefined;
    start(certificate: Certificate, port?: number): Promise<Peer>;
}

export const peers: PeerKind[] = [
    { name: 'nginx', version: () => versionOf('nginx', ['-v'], /nginx\/\S+/), start: startNginx },
    { name: 'HAProxy', version: () => versionOf('haproxy', ['-v'], /\d\.\d+\.\d+/), start: startHaproxy },
    { name: 'openssl s_server', version: () => versionOf('openssl', ['version'], /OpenSSL \S+/), start: startOpenssl },
    { name: 'Quadrille', version: () => versionOf(quadrille(), ['--version'], /quadrille \S+/), start: startQuadrille },
    { name: 'Node', version: () => process.version, start: startNode },
];

/** The gateway of this repository: `QUADRILLE_BIN`, or the output of `make build`. */
export function quadrille(): string {
    return process.env.QUADRILLE_BIN ?? resolve(__dirname, '../../../../../bin/quadrille');
}

async function startNginx(certificate: Certificate, given?: number): Promise<Peer> {
    const [folder, port] = [temporaryFolder(), given ?? (await freePort())];
    const configuration = `
        daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
        events {}
        http {
            access_log off;
            ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
            server {
                listen 127.0.0.1:${port} ssl;
                ssl_certificate ${certificate.certFile}; ssl_certificate_key ${certificate.keyFile};
                ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:tls:1m; ssl_session_ticket_key ${ticketKey(folder)};
                location / { return 200 "ok"; }
            }
        }`;
    writeFileSync(join(folder, 'nginx.conf'), configuration);
    return launch('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], port);
}

async function startHaproxy(certificate: Certificate, given?: number): Promise<Peer> {
    const [folder, port] = [temporaryFolder(), given ?? (await freePort())];
    writeFileSync(join(folder, 'tickets'), [1, 2, 3].map(() => `${Buffer.alloc(48, 5).toString('base64')}\n`).join(''));
    const configuration = `
        global
            maxconn 200
        defaults
            mode http
            timeout client 10s
            timeout server 10s
            timeout connect 10s
        frontend tls
            bind 127.0.0.1:${port} ssl crt ${certificate.bothFile} tls-ticket-keys ${join(folder, 'tickets')} ssl-min-ver TLSv1.2
            http-request return status 200 content-type text/plain string ok\n`;
    writeFileSync(join(folder, 'haproxy.cfg'), configuration);
    return launch('haproxy', ['-db', '-f', join(folder, 'haproxy.cfg')], port);
}

async function startOpenssl(certificate: Certificate, given?: number): Promise<Peer> {
    const port = given ?? (await freePort());
    const files = ['-cert', certificate.certFile, '-key', certificate.keyFile];
    return launch('openssl', ['s_server', '-accept', `127.0.0.1:${port}`, ...files, '-www', '-quiet'], port);
}

async function startQuadrille(certificate: Certificate, given?: number): Promise<Peer> {
    const port = given ?? (await freePort());
    const files = ['--cert', certificate.certFile, '--key', certificate.keyFile];
    const quiet = ['--admin', 'off', '--log-level', 'error'];
    return launch(quadrille(), ['serve', '--listen', `127.0.0.1:${port}`, ...files, '--respond', 'ok', ...quiet], port);
}

async function startNode(certificate: Certificate, given?: number): Promise<Peer> {
    const server = await serve(certificate, { port: given ?? 0, ticketKeys: Buffer.alloc(48, 5) });
    return { port: server.port, stop: () => server.close() };
}

async function launch(program: string, args: string[], port: number): Promise<Peer> {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const stopAtExit = () => child.kill('SIGKILL');
    process.once('exit', stopAtExit);
    await answers(port, child, () => `${program} ${args.join(' ')}:\n${output}`);
    return {
        port,
        stop: async () => {
            process.removeListener('exit', stopAtExit);
            if (child.exitCode !== null) return;
            child.kill('SIGTERM');
            const kill = setTimeout(() => child.kill('SIGKILL'), 2000);
            await once(child, 'exit');
            clearTimeout(kill);
        },
    };
}

/** Waits until the port accepts connections. */
async function answers(port: number, child: ChildProcess, describe: () => string): Promise<void> {
    for (let i = 0; i < 400; i++) {
        if (child.exitCode !== null) throw new Error(`it ended: ${describe()}`);
        const socket = connect(port, '127.0.0.1');
        const isOpen = await Promise.race([
            once(socket, 'connect').then(() => true),
            once(socket, 'close').then(() => false),
        ]).catch(() => false);
        socket.destroy();
        if (isOpen) return;
        await delay(25);
    }
    throw new Error(`it does not listen: ${describe()}`);
}

/** Returns a port that was free a moment ago. */
export async function freePort(): Promise<number> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    return port;
}

function ticketKey(folder: string): string {
    const file = join(folder, 'ticket.key');
    writeFileSync(file, Buffer.alloc(80, 5));
    return file;
}

function versionOf(program: string, args: string[], pattern: RegExp): string | undefined {
    if (program.includes('/') && !existsSync(program)) return undefined;
    try {
        // nginx prints it on stderr.
        const output = execFileSync('sh', ['-c', '"$0" "$@" 2>&1', program, ...args], { encoding: 'utf8' });
        return pattern.exec(output)?.[0];
    } catch {
        return undefined;
    }
}
