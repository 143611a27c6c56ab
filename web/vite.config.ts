import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  // The page allows no data: addresses but for images, so nothing is inlined.
  build: { target: "es2023", assetsInlineLimit: 0, chunkSizeWarningLimit: 900 },
  server: {
    // The cookie and the Origin check want one host: the development server passes Host on unchanged.
    proxy: { "/api": { target: "http://127.0.0.1:8787", changeOrigin: false } },
  },
});
