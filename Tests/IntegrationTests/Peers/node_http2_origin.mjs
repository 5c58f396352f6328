// An HTTP/2 origin of Node's own modules: node_http2_origin.mjs CERTIFICATE KEY
// /large/N: N bytes in one pattern; anything else: what was sent, and a trailer.
import fs from 'node:fs';
import http2 from 'node:http2';

const [certificate, key] = process.argv.slice(2);
const server = http2.createSecureServer({ cert: fs.readFileSync(certificate), key: fs.readFileSync(key) });
const block = Buffer.from(Array.from({ length: 65536 }, (_, index) => index % 256));

server.on('stream', (stream, fields) => {
  stream.on('error', () => {});
  const [, name, count] = fields[':path'].split('/');
  if (name !== 'large') {
    stream.respond({ ':status': 200 }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-end': 'yes' }));
    stream.pipe(stream);
    return;
  }
  let left = Number(count);
  stream.respond({ ':status': 200, 'content-length': count });
  const write = () => {
    while (left > 0) {
      const piece = block.subarray(0, Math.min(left, block.length));
      left -= piece.length;
      if (!stream.write(piece)) {
        stream.once('drain', write);
        return;
      }
    }
    stream.end();
  };
  write();
});
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ event: 'ready', port: server.address().port })));
