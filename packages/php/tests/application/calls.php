<?php

/**
 * A process that calls a server repeatedly with PHP's curl: `calls.php full|resumed|kept URL CA`. For each response
 * it writes the number of connections made for it.
 *
 * - full: a handle for each call, as in most applications
 * - resumed: a handle for each call, with a share that keeps sessions
 * - kept: one handle, and so one connection
 */

declare(strict_types=1);

[, $kind, $url, $ca] = $argv;
$share = curl_share_init();
curl_share_setopt($share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
$call = null;

while (true) {
    if ($kind !== 'kept' || $call === null) {
        $call = curl_init($url);
        curl_setopt_array($call, [
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_CAINFO => $ca,
            // TLS 1.2, in which a resumed handshake exchanges no keys.
            CURLOPT_SSLVERSION => CURL_SSLVERSION_TLSv1_2 | CURL_SSLVERSION_MAX_TLSv1_2,
            // With HTTP/2 offered, curl 7.88 keeps sessions that servers do not accept.
            CURLOPT_HTTP_VERSION => CURL_HTTP_VERSION_1_1,
            CURLOPT_TIMEOUT => 10,
        ]);
        $kind === 'resumed' && curl_setopt($call, CURLOPT_SHARE, $share);
    }
    if (curl_exec($call) === false || curl_getinfo($call, CURLINFO_RESPONSE_CODE) !== 200) {
        fwrite(STDERR, curl_error($call) . "\n");
        exit(1);
    }
    echo curl_getinfo($call, CURLINFO_NUM_CONNECTS);
}
