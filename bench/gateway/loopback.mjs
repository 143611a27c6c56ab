// Preloaded into a peer that listens on every interface: it gets loopback alone.
import { Server } from "node:net";

const listen = Server.prototype.listen;
Server.prototype.listen = function (port, ...rest) {
  if (typeof port === "object") return listen.call(this, { ...port, host: "127.0.0.1" }, ...rest);
  return listen.call(this, port, "127.0.0.1", ...rest.filter((value) => typeof value === "function"));
};
