import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A certificate with its key, in PEM, and the files that hold them. */
export interface Certificate {
    readonly cert: string;
    readonly key: string;
    readonly certFile: string;
    readonly keyFile: string;
    /** Certificate and key in one file, for HAProxy. */
    readonly bothFile: string;
}

/** A folder that is removed when the process ends. */
export function temporaryFolder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'quadrille-agent-'));
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
    return folder;
}

export class Authority {
    readonly #folder = temporaryFolder();
    readonly #root: Certificate;
    #last = 0;

    constructor(name: string) {
        const extensions = 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign';
        this.#root = this.#make('root', name, extensions, []);
    }

    /** The root, in the form of the option `ca`. */
    get ca(): string {
        return this.#root.cert;
    }

    get caFile(): string {
        return this.#root.certFile;
    }

    /** Issues a certificate for servers of these names (or addresses), or for a client of that name. */
    issue(names: string[], { days = 30, keyType = 'EC' }: { days?: number; keyType?: 'EC' | 'RSA' } = {}): Certificate {
        const alternatives = names.map((name) => (/^[\d.]+$/.test(name) ? `IP:${name}` : `DNS:${name}`));
        const signer = ['-CA', this.#root.certFile, '-CAkey', this.#root.keyFile];
        return this.#make(
            `leaf${++this.#last}`,
            names[0] ?? '',
            `subjectAltName=${alternatives.join()}`,
            signer,
            days,
            keyType,
        );
    }

    #make(file: string, name: string, extensions: string, signer: string[], days = 30, keyType = 'EC'): Certificate {
        const path = (suffix: string) => join(this.#folder, file + suffix);
        const config = `[req]\ndistinguished_name=dn\nprompt=no\nx509_extensions=v3\n[dn]\nCN=${name}\n[v3]\n${extensions}\n`;
        writeFileSync(path('.cnf'), config);
        const algorithm =
            keyType === 'EC'
                ? ['EC', '-pkeyopt', 'ec_paramgen_curve:P-256']
                : ['RSA', '-pkeyopt', 'rsa_keygen_bits:2048'];
        openssl('genpkey', '-algorithm', ...algorithm, '-out', path('.key'));
        openssl(
            'req',
            '-x509',
            '-new',
            '-key',
            path('.key'),
            '-out',
            path('.pem'),
            '-days',
            String(days),
            '-config',
            path('.cnf'),
            ...signer,
        );
        const [cert, key] = [readFileSync(path('.pem'), 'latin1'), readFileSync(path('.key'), 'latin1')];
        writeFileSync(path('.both'), cert + key);
        return { cert, key, certFile: path('.pem'), keyFile: path('.key'), bothFile: path('.both') };
    }
}

function openssl(...args: string[]): void {
    execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}
