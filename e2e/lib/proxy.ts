import { once } from "node:events";
import { createServer, connect, type AddressInfo, type Socket } from "node:net";

/** A line to a server that can be cut. */
export class Proxy {
  url = "";
  /** After how many bytes to the client a connection is cut. */
  cutAfter = Infinity;
  /** The connections that were cut. */
  cuts = 0;
  private readonly sockets = new Set<Socket>();
  private readonly listener = createServer((client) => this.join(client));

  private constructor(private readonly port: number) {}

  /** Listens before the server at url. */
  static async before(url: string): Promise<Proxy> {
    const proxy = new Proxy(Number(new URL(url).port));
    proxy.listener.listen(0, "127.0.0.1");
    await once(proxy.listener, "listening");
    proxy.url = `http://127.0.0.1:${(proxy.listener.address() as AddressInfo).port}`;
    return proxy;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.listener.close();
    await once(this.listener, "close");
  }

  private join(client: Socket): void {
    const server = connect(this.port, "127.0.0.1");
    let left = this.cutAfter;
    for (const [one, other] of [[client, server], [server, client]] as const) {
      this.sockets.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        this.sockets.delete(one);
        other.end();
      });
    }
    client.on("data", (bytes) => server.write(bytes));
    server.on("data", (bytes) => {
      if (bytes.length <= left) {
        left -= bytes.length;
        client.write(bytes);
        return;
      }
      this.cuts++;
      client.end(bytes.subarray(0, left));
      server.destroy();
    });
  }
}
