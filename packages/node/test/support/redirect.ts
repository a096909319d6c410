/** Preloaded module that redirects connections to port 443 of example.com to REDIRECT_PORT of this machine. */
import * as net from 'node:net';
import { toLoopback } from './client.js';

const connect = net.Socket.prototype.connect as (...args: unknown[]) => net.Socket;

net.Socket.prototype.connect = function (this: net.Socket, ...args: unknown[]) {
    const first = (Array.isArray(args[0]) ? args[0][0] : args[0]) as net.TcpNetConnectOpts;
    if (Number(first.port) === 443 && first.host?.endsWith('example.com')) {
        Object.assign(first, { port: Number(process.env.REDIRECT_PORT), lookup: toLoopback });
    }
    return Reflect.apply(connect, this, args);
} as never;
