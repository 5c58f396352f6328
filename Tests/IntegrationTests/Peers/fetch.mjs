// Fetches a URL over TLS through CONNECT, with nothing but Node's own modules:
// fetch.mjs PROXY_HOST PROXY_PORT AUTHORITY.pem URL
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import tls from 'node:tls';

const [host, port, authority, address] = process.argv.slice(2);
const url = new URL(address);
const target = `${url.hostname}:${url.port || 443}`;

http.request({ host, port, method: 'CONNECT', path: target, headers: { Host: target } })
  .on('connect', (response, socket) => {
    if (response.statusCode !== 200) {
      console.log(`refused: ${response.statusCode} ${response.statusMessage}`);
      process.exit(1);
    }
    const secure = tls.connect({ socket, servername: url.hostname, ca: fs.readFileSync(authority) });
    https.get(url, { createConnection: () => secure }, (answer) => {
      answer.setEncoding('utf8');
      let body = '';
      answer.on('data', (piece) => { body += piece; });
      answer.on('end', () => console.log(answer.statusCode, body.trim()));
    });
  })
  .on('error', (error) => {
    console.log(`failed: ${error.message}`);
    process.exit(2);
  })
  .end();
